engine_libengine_a_SOURCES += \
	%D%/adaptive_avg_pool2d.c \
	%D%/add.c \
	%D%/attr.h \
	%D%/batch_norm.c \
	%D%/collective.c \
	%D%/conv2d.c \
	%D%/cross_entropy.c \
	%D%/dropout.c \
	%D%/grad.c \
	%D%/grad.h \
	%D%/linear.c \
	%D%/loss.c \
	%D%/loss.h \
	%D%/max_pool2d.c \
	%D%/mse.c \
	%D%/ops.def \
	%D%/registry.c \
	%D%/registry.h \
	%D%/relu.c \
	%D%/reorder.c \
	%D%/reshape.c \
	%D%/sgd.c \
	%D%/window.c \
	%D%/window.h
