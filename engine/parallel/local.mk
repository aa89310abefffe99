engine_libengine_a_SOURCES += \
	%D%/balance.c \
	%D%/balance.h \
	%D%/chunk.c \
	%D%/chunk.h \
	%D%/crew.c \
	%D%/crew.h \
	%D%/longest.c \
	%D%/longest.h \
	%D%/memory.c \
	%D%/memory.h \
	%D%/microbatch.c \
	%D%/microbatch.h \
	%D%/replica.c \
	%D%/replica.h \
	%D%/replicate.c \
	%D%/rows.c \
	%D%/rows.h \
	%D%/shapes.c \
	%D%/shapes.h \
	%D%/shard_sum.c \
	%D%/shard_sum.h \
	%D%/strategy.c \
	%D%/strategy.h \
	%D%/strategy_def.h \
	%D%/timetable.c \
	%D%/timetable.h
