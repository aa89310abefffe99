engine_libengine_a_SOURCES += \
	%D%/attr.h \
	%D%/ops.def \
	%D%/registry.h
