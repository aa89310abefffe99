engine_libengine_a_SOURCES += \
	%D%/comm.h \
	%D%/local.c \
	%D%/tree.c \
	%D%/tree.h
