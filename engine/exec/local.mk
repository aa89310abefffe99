engine_libengine_a_SOURCES += \
	%D%/executor.h
