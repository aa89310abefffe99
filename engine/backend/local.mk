engine_libengine_a_SOURCES += \
	%D%/backend.h
