# The simulated libraries: their sonames and version nodes are the real ones', so that the module runs over either.
CUDASIM_SHARED_FLAGS = $(AM_LDFLAGS) -shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN'
# C's enumerations arrive with any value: that is what the calls check.
CUDASIM_CXXFLAGS = $(AM_CXXFLAGS) -fPIC -fno-sanitize=enum

check_LIBRARIES += tests/cudasim/libloops.a
tests_cudasim_libloops_a_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cudasim_libloops_a_CXXFLAGS = $(CUDASIM_CXXFLAGS)
tests_cudasim_libloops_a_SOURCES = \
	tests/cudasim/library.cc \
	tests/cudasim/core.hpp \
	tests/cudasim/library.hpp \
	tests/cudasim/loops.hpp \
	tests/cudasim/loops_conv.cc \
	tests/cudasim/loops_gemm.cc \
	tests/cudasim/loops_norm.cc \
	tests/cudasim/loops_pool.cc \
	tests/cudasim/loops_rnn.cc \
	tests/cudasim/loops_softmax.cc \
	tests/cudasim/number.cc \
	tests/cudasim/number.hpp

check_PROGRAMS += tests/cudasim/lib/libcudart.so.13
tests_cudasim_lib_libcudart_so_13_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cudasim_lib_libcudart_so_13_CXXFLAGS = $(CUDASIM_CXXFLAGS)
tests_cudasim_lib_libcudart_so_13_LDFLAGS = $(CUDASIM_SHARED_FLAGS) -Wl,-soname,libcudart.so.13 \
	-Wl,--version-script=$(srcdir)/tests/cudasim/cudart.map
tests_cudasim_lib_libcudart_so_13_LDADD = -ldl -lpthread
tests_cudasim_lib_libcudart_so_13_SOURCES = \
	tests/cudasim/core.hpp \
	tests/cudasim/kernel.hpp \
	tests/cudasim/kernels.cc \
	tests/cudasim/kernels.hpp \
	tests/cudasim/number.hpp \
	tests/cudasim/runtime.cc \
	tests/cudasim/runtime.hpp \
	tests/cudasim/runtime_device.cc \
	tests/cudasim/runtime_kernel.cc \
	tests/cudasim/runtime_memory.cc \
	tests/cudasim/shadow.cc \
	tests/cudasim/shadow.hpp

# The backend's kernels for the host, from its own files: what ThreadSanitizer's calls tell, the simulator hears.
cudasim_kernels = $(cuda_kernels:.cu=.sim.o)
CUDASIM_KERNEL_FLAGS = -std=gnu++17 -x c++ -include $(srcdir)/tests/cudasim/kernel.hpp -O1 -ffp-contract=off \
	-fno-strict-aliasing -fsanitize=thread -fPIC
%.sim.o: %.cu tests/cudasim/kernel.hpp
	@$(MKDIR_P) $(@D)
	$(AM_V_CXX)$(CXX) $(CPPFLAGS) $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CUDASIM_KERNEL_FLAGS) -MMD -MF $(@:.o=.d) -c $< -o $@
-include $(cudasim_kernels:.o=.d)
tests/cudasim/lib/libkernels.so: $(cudasim_kernels) tests/cudasim/lib/libcudart.so.13
	$(AM_V_CXXLD)$(CXX) -shared -Wl,-z,defs -o $@ $(cudasim_kernels) tests/cudasim/lib/libcudart.so.13
check_DATA += tests/cudasim/lib/libkernels.so
CLEANFILES += tests/cudasim/lib/libkernels.so $(cudasim_kernels) $(cudasim_kernels:.o=.d)

check_PROGRAMS += tests/cudasim/lib/libcublasLt.so.13
tests_cudasim_lib_libcublasLt_so_13_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cudasim_lib_libcublasLt_so_13_CXXFLAGS = $(CUDASIM_CXXFLAGS)
tests_cudasim_lib_libcublasLt_so_13_LDFLAGS = $(CUDASIM_SHARED_FLAGS) -Wl,-soname,libcublasLt.so.13 \
	-Wl,--version-script=$(srcdir)/tests/cudasim/cublaslt.map
tests_cudasim_lib_libcublasLt_so_13_LDADD = tests/cudasim/libloops.a tests/cudasim/lib/libcudart.so.13
tests_cudasim_lib_libcublasLt_so_13_SOURCES = \
	tests/cudasim/cublas_status.cc \
	tests/cudasim/cublas_status.hpp \
	tests/cudasim/cublaslt.cc \
	tests/cudasim/cublaslt_desc.cc \
	tests/cudasim/cublaslt_desc.hpp

check_PROGRAMS += tests/cudasim/lib/libcublas.so.13
tests_cudasim_lib_libcublas_so_13_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cudasim_lib_libcublas_so_13_CXXFLAGS = $(CUDASIM_CXXFLAGS)
tests_cudasim_lib_libcublas_so_13_LDFLAGS = $(CUDASIM_SHARED_FLAGS) -Wl,-soname,libcublas.so.13 \
	-Wl,--version-script=$(srcdir)/tests/cudasim/cublas.map
tests_cudasim_lib_libcublas_so_13_LDADD = tests/cudasim/libloops.a tests/cudasim/lib/libcudart.so.13
tests_cudasim_lib_libcublas_so_13_SOURCES = \
	tests/cudasim/cublas.cc \
	tests/cudasim/cublas_status.cc \
	tests/cudasim/cublas_status.hpp

check_PROGRAMS += tests/cudasim/lib/libcudnn.so.9
tests_cudasim_lib_libcudnn_so_9_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cudasim_lib_libcudnn_so_9_CXXFLAGS = $(CUDASIM_CXXFLAGS)
tests_cudasim_lib_libcudnn_so_9_LDFLAGS = $(CUDASIM_SHARED_FLAGS) -Wl,-soname,libcudnn.so.9 \
	-Wl,--version-script=$(srcdir)/tests/cudasim/cudnn.map
tests_cudasim_lib_libcudnn_so_9_LDADD = tests/cudasim/libloops.a tests/cudasim/lib/libcudart.so.13
tests_cudasim_lib_libcudnn_so_9_SOURCES = \
	tests/cudasim/cudnn.hpp \
	tests/cudasim/cudnn_activation.cc \
	tests/cudasim/cudnn_conv.cc \
	tests/cudasim/cudnn_conv.hpp \
	tests/cudasim/cudnn_conv_algo.cc \
	tests/cudasim/cudnn_handle.cc \
	tests/cudasim/cudnn_norm.cc \
	tests/cudasim/cudnn_pointwise.cc \
	tests/cudasim/cudnn_pool.cc \
	tests/cudasim/cudnn_rnn.cc \
	tests/cudasim/cudnn_rnn.hpp \
	tests/cudasim/cudnn_rnn_run.cc \
	tests/cudasim/cudnn_tensor.cc

check_PROGRAMS += tests/cudasim/lib/libnccl.so.2
tests_cudasim_lib_libnccl_so_2_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cudasim_lib_libnccl_so_2_CXXFLAGS = $(CUDASIM_CXXFLAGS)
tests_cudasim_lib_libnccl_so_2_LDFLAGS = $(CUDASIM_SHARED_FLAGS) -Wl,-soname,libnccl.so.2 \
	-Wl,--version-script=$(srcdir)/tests/cudasim/nccl.map
tests_cudasim_lib_libnccl_so_2_LDADD = tests/cudasim/libloops.a tests/cudasim/lib/libcudart.so.13 -lpthread
tests_cudasim_lib_libnccl_so_2_SOURCES = \
	tests/cudasim/nccl.cc \
	tests/cudasim/nccl.hpp \
	tests/cudasim/nccl_move.cc


# Their tests run over the simulated ones alone, whatever LD_LIBRARY_PATH says.
CUDASIM_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
CUDASIM_TEST_CXXFLAGS = $(AM_CXXFLAGS) $(CHECK_CFLAGS)
CUDASIM_LINK_FLAGS = $(AM_LDFLAGS) -Wl,--disable-new-dtags -Wl,-rpath,$(abs_builddir)/tests/cudasim/lib
CUDASIM_LIBS = tests/cudasim/lib/libcudart.so.13
CUDASIM_TEST = tests/cudasim/library_test.cc tests/cudasim/library_test.hpp

check_PROGRAMS += tests/cudasim/check_cublas
TESTS += tests/cudasim/check_cublas
tests_cudasim_check_cublas_SOURCES = tests/cudasim/check_cublas.cc $(CUDASIM_TEST)
tests_cudasim_check_cublas_CPPFLAGS = $(CUDASIM_TEST_CPPFLAGS)
tests_cudasim_check_cublas_CXXFLAGS = $(CUDASIM_TEST_CXXFLAGS)
tests_cudasim_check_cublas_LDFLAGS = $(CUDASIM_LINK_FLAGS)
tests_cudasim_check_cublas_LDADD = tests/cudasim/libloops.a tests/cudasim/lib/libcublas.so.13 tests/cudasim/lib/libcublasLt.so.13 $(CUDASIM_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/cudasim/check_cudnn
TESTS += tests/cudasim/check_cudnn
tests_cudasim_check_cudnn_SOURCES = tests/cudasim/check_cudnn.cc tests/cudasim/cudnn_test.hpp $(CUDASIM_TEST)
tests_cudasim_check_cudnn_CPPFLAGS = $(CUDASIM_TEST_CPPFLAGS)
tests_cudasim_check_cudnn_CXXFLAGS = $(CUDASIM_TEST_CXXFLAGS)
tests_cudasim_check_cudnn_LDFLAGS = $(CUDASIM_LINK_FLAGS)
tests_cudasim_check_cudnn_LDADD = tests/cudasim/libloops.a tests/cudasim/lib/libcudnn.so.9 $(CUDASIM_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/cudasim/check_cudnn_conv
TESTS += tests/cudasim/check_cudnn_conv
tests_cudasim_check_cudnn_conv_SOURCES = tests/cudasim/check_cudnn_conv.cc tests/cudasim/cudnn_test.hpp $(CUDASIM_TEST)
tests_cudasim_check_cudnn_conv_CPPFLAGS = $(CUDASIM_TEST_CPPFLAGS)
tests_cudasim_check_cudnn_conv_CXXFLAGS = $(CUDASIM_TEST_CXXFLAGS)
tests_cudasim_check_cudnn_conv_LDFLAGS = $(CUDASIM_LINK_FLAGS)
tests_cudasim_check_cudnn_conv_LDADD = tests/cudasim/libloops.a tests/cudasim/lib/libcudnn.so.9 $(CUDASIM_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/cudasim/check_cudnn_rnn
TESTS += tests/cudasim/check_cudnn_rnn
tests_cudasim_check_cudnn_rnn_SOURCES = tests/cudasim/check_cudnn_rnn.cc tests/cudasim/cudnn_test.hpp $(CUDASIM_TEST)
tests_cudasim_check_cudnn_rnn_CPPFLAGS = $(CUDASIM_TEST_CPPFLAGS)
tests_cudasim_check_cudnn_rnn_CXXFLAGS = $(CUDASIM_TEST_CXXFLAGS)
tests_cudasim_check_cudnn_rnn_LDFLAGS = $(CUDASIM_LINK_FLAGS)
tests_cudasim_check_cudnn_rnn_LDADD = tests/cudasim/libloops.a tests/cudasim/lib/libcudnn.so.9 $(CUDASIM_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/cudasim/check_nccl
TESTS += tests/cudasim/check_nccl
tests_cudasim_check_nccl_SOURCES = tests/cudasim/check_nccl.cc $(CUDASIM_TEST)
tests_cudasim_check_nccl_CPPFLAGS = $(CUDASIM_TEST_CPPFLAGS)
tests_cudasim_check_nccl_CXXFLAGS = $(CUDASIM_TEST_CXXFLAGS)
tests_cudasim_check_nccl_LDFLAGS = $(CUDASIM_LINK_FLAGS)
tests_cudasim_check_nccl_LDADD = tests/cudasim/libloops.a tests/cudasim/lib/libnccl.so.2 $(CUDASIM_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/cudasim/check_runtime
TESTS += tests/cudasim/check_runtime
tests_cudasim_check_runtime_SOURCES = tests/cudasim/check_runtime.cc $(CUDASIM_TEST)
tests_cudasim_check_runtime_CPPFLAGS = $(CUDASIM_TEST_CPPFLAGS)
tests_cudasim_check_runtime_CXXFLAGS = $(CUDASIM_TEST_CXXFLAGS)
tests_cudasim_check_runtime_LDFLAGS = $(CUDASIM_LINK_FLAGS)
tests_cudasim_check_runtime_LDADD = tests/cudasim/libloops.a tests/cudasim/lib/libcublas.so.13 $(CUDASIM_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/cudasim/check_same
TESTS += tests/cudasim/check_same
tests_cudasim_check_same_SOURCES = tests/cudasim/check_same.cc
tests_cudasim_check_same_CPPFLAGS = $(CUDASIM_TEST_CPPFLAGS) -DCUDA_HOME='"$(CUDA_HOME)"'
tests_cudasim_check_same_CXXFLAGS = $(CUDASIM_TEST_CXXFLAGS)
tests_cudasim_check_same_LDADD = $(TEST_LIBS)
