# engine/backend/cpu: the CPU as a device.
engine_libengine_a_SOURCES += \
	%D%/activation.c \
	%D%/adaptive_avg_pool2d.c \
	%D%/argmax.c \
	%D%/avg_pool2d.c \
	%D%/batch_norm.c \
	%D%/cat.c \
	%D%/conv2d.c \
	%D%/cpu.c \
	%D%/cpu.h \
	%D%/dropout.c \
	%D%/fold.c \
	%D%/gradients.c \
	%D%/kernels.def \
	%D%/layer_norm.c \
	%D%/layout.c \
	%D%/layout.h \
	%D%/linear.c \
	%D%/loss.c \
	%D%/max_pool2d.c \
	%D%/own.c \
	%D%/own.h \
	%D%/primitive.c \
	%D%/primitive.h \
	%D%/program.c \
	%D%/program.h \
	%D%/relu.c \
	%D%/reorder.c \
	%D%/sgd.c \
	%D%/softmax.c \
	%D%/status.c \
	%D%/status.h \
	%D%/vector.h
