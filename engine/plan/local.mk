engine_libengine_a_SOURCES += \
	%D%/liveness.h \
	%D%/plan.h
