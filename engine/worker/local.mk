engine_libengine_a_SOURCES += \
	%D%/document.c \
	%D%/document.h \
	%D%/machine.c \
	%D%/machine.h \
	%D%/reporter.c \
	%D%/reporter.h \
	%D%/setup.c \
	%D%/setup.h
