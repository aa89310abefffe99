engine_libengine_a_SOURCES += \
	%D%/arena.c \
	%D%/arena.h \
	%D%/bell.c \
	%D%/bell.h \
	%D%/clock.c \
	%D%/clock.h \
	%D%/dtype.c \
	%D%/dtype.h \
	%D%/file.c \
	%D%/file.h \
	%D%/hash.c \
	%D%/hash.h \
	%D%/rng.c \
	%D%/rng.h \
	%D%/safetensors.c \
	%D%/safetensors.h \
	%D%/safetensors_write.c \
	%D%/shape.c \
	%D%/shape.h \
	%D%/team.c \
	%D%/team.h \
	%D%/thread.c \
	%D%/thread.h
