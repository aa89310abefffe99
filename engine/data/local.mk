engine_libengine_a_SOURCES += \
	%D%/array.c \
	%D%/array.h \
	%D%/dataset.c \
	%D%/dataset.h \
	%D%/dataset_arrays.c \
	%D%/dataset_arrays.h \
	%D%/dataset_format.h \
	%D%/dataset_idx.c \
	%D%/dataset_random.c \
	%D%/idx.c \
	%D%/idx.h \
	%D%/loader.c \
	%D%/loader.h \
	%D%/order.c \
	%D%/order.h
