engine_libengine_a_SOURCES += \
	%D%/autograd.c \
	%D%/build.c \
	%D%/build.h \
	%D%/dump.c \
	%D%/forward.c \
	%D%/fuse.c \
	%D%/fuse.h \
	%D%/graph.c \
	%D%/graph.h \
	%D%/init_rule.c \
	%D%/model.c \
	%D%/model.h \
	%D%/op.c \
	%D%/op.h \
	%D%/precision.c \
	%D%/prune.c \
	%D%/record.c \
	%D%/recompute.c \
	%D%/rest.c \
	%D%/segments.c \
	%D%/segments.h \
	%D%/split.c \
	%D%/split.h \
	%D%/stage.c \
	%D%/trim.c \
	%D%/update.c
