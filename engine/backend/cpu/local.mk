# engine/backend/cpu: the CPU as a device.
engine_libengine_a_SOURCES += \
	%D%/adaptive_avg_pool2d.c \
	%D%/add.c \
	%D%/argmax.c \
	%D%/batch_norm.c \
	%D%/conv2d.c \
	%D%/cpu.c \
	%D%/cpu.h \
	%D%/dropout.c \
	%D%/gradients.c \
	%D%/kernels.def \
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
	%D%/status.c \
	%D%/status.h
