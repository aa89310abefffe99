engine_libengine_a_SOURCES += \
	%D%/chunk.h \
	%D%/strategy.h
