engine_libengine_a_SOURCES += \
	%D%/chunk.c \
	%D%/chunk.h \
	%D%/replica.c \
	%D%/replica.h \
	%D%/replicate.c \
	%D%/shapes.c \
	%D%/shapes.h \
	%D%/strategy.h
