# engine/backend/cuda: GPUs as devices: a loadable module, where the build found CUDA's libraries.
# What it uses of the engine is pure and linked into it once more.
if HAVE_CUDA
pkglibexec_PROGRAMS += engine/backend/cuda/engine-cuda.so
endif

cuda_sources = \
	%D%/activation.c \
	%D%/attention.c \
	%D%/attention.h \
	%D%/batch_norm.c \
	%D%/cat.c \
	%D%/channels.h \
	%D%/class_loss.c \
	%D%/collective.c \
	%D%/conv2d.c \
	%D%/convolution.c \
	%D%/convolution.h \
	%D%/cuda.h \
	%D%/device.c \
	%D%/dropout.c \
	%D%/embedding.c \
	%D%/fold.c \
	%D%/gradients.c \
	%D%/image.h \
	%D%/kernels.def \
	%D%/launch.h \
	%D%/launchers.h \
	%D%/layer_norm.c \
	%D%/layout.c \
	%D%/layout.h \
	%D%/linear.c \
	%D%/loss.h \
	%D%/module.c \
	%D%/own.c \
	%D%/own.h \
	%D%/philox.cuh \
	%D%/pool.c \
	%D%/pool.h \
	%D%/probe.c \
	%D%/product.c \
	%D%/product.h \
	%D%/real.cuh \
	%D%/recurrent.c \
	%D%/recurrent.h \
	%D%/reduce.h \
	%D%/reorder.c \
	%D%/replicas.c \
	%D%/rows.h \
	%D%/sequence.h \
	%D%/softmax.c \
	%D%/spectral.h \
	%D%/spectral_norm.c \
	%D%/statistics.c \
	%D%/status.c \
	%D%/status.h \
	%D%/step.h \
	%D%/transfer.c \
	%D%/update.c \
	%D%/update.h \
	%D%/value_loss.c
cuda_shared_sources = \
	engine/base/arena.c \
	engine/base/dtype.c \
	engine/base/rng.c \
	engine/base/shape.c \
	proto/err.c
# Our own kernels, for nvcc.
cuda_kernels = \
	%D%/attention.cu \
	%D%/channels.cu \
	%D%/convert.cu \
	%D%/dropout.cu \
	%D%/elementwise.cu \
	%D%/loss.cu \
	%D%/pool.cu \
	%D%/recurrent.cu \
	%D%/reduce.cu \
	%D%/rows.cu \
	%D%/sequence.cu \
	%D%/spectral.cu \
	%D%/step.cu \
	%D%/update.cu
EXTRA_DIST += $(cuda_kernels)

engine_backend_cuda_engine_cuda_so_SOURCES = $(cuda_sources) $(cuda_shared_sources)
engine_backend_cuda_engine_cuda_so_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
engine_backend_cuda_engine_cuda_so_CFLAGS = $(AM_CFLAGS) -fPIC -fvisibility=hidden
engine_backend_cuda_engine_cuda_so_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-Bsymbolic -Wl,-z,now
engine_backend_cuda_engine_cuda_so_LDADD = $(cuda_kernels:.cu=.cu.o) $(CUDA_LIBS) $(MATH_LIBS)
engine_backend_cuda_engine_cuda_so_DEPENDENCIES = $(cuda_kernels:.cu=.cu.o)

AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
NVCC_FLAGS = -std=c++17 -O3 $(CUDA_ARCH_FLAGS) $(NVCC_WERROR) -Xcompiler=-fPIC,-fvisibility=hidden \
	-Xcompiler=-Wall,-Wextra,-fno-exceptions,-fno-threadsafe-statics
# Else make would take X.cu for what is linked from X.cu.o.
%: %.o
%.cu.o: %.cu
	@$(MKDIR_P) $(@D)
	$(AM_V_NVCC)$(NVCC) $(NVCC_FLAGS) $(AM_CPPFLAGS) -MMD -MF $(@:.o=.d) -c $< -o $@
-include $(cuda_kernels:.cu=.cu.d)
CLEANFILES += $(cuda_kernels:.cu=.cu.o) $(cuda_kernels:.cu=.cu.d)
