engine_libengine_a_SOURCES += \
	%D%/executor.c \
	%D%/executor.h
