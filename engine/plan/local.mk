engine_libengine_a_SOURCES += \
	%D%/dump.c \
	%D%/lifetime.c \
	%D%/lifetime.h \
	%D%/liveness.c \
	%D%/liveness.h \
	%D%/place.c \
	%D%/plan.c \
	%D%/plan.h \
	%D%/planner.h \
	%D%/sections.c \
	%D%/sections.h \
	%D%/variable_map.c
