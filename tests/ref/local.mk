# tests/ref: every op as naive loops in double.
check_LIBRARIES += tests/ref/libref.a
tests_ref_libref_a_SOURCES = \
	tests/ref/activation.c \
	tests/ref/attention.c \
	tests/ref/avg_pool.c \
	tests/ref/batch_norm.c \
	tests/ref/batch_norm_synchronized.c \
	tests/ref/cat.c \
	tests/ref/conv2d.c \
	tests/ref/elementwise.c \
	tests/ref/embedding.c \
	tests/ref/layer_norm.c \
	tests/ref/linear.c \
	tests/ref/loss.c \
	tests/ref/pool.c \
	tests/ref/recurrent.c \
	tests/ref/ref.c \
	tests/ref/ref.def \
	tests/ref/ref.h \
	tests/ref/softmax.c \
	tests/ref/spectral_norm.c \
	tests/ref/statistics.c \
	tests/ref/update.c
