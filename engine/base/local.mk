engine_libengine_a_SOURCES += \
	%D%/arena.h \
	%D%/dtype.h \
	%D%/rng.h \
	%D%/shape.h \
	%D%/team.h \
	%D%/thread.h
