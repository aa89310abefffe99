engine_libengine_a_SOURCES += \
	%D%/accumulate.c \
	%D%/accumulate.h \
	%D%/checkpoint.c \
	%D%/checkpoint.h \
	%D%/evaluate.c \
	%D%/evaluate.h \
	%D%/identity.c \
	%D%/identity.h \
	%D%/init.c \
	%D%/init.h \
	%D%/metrics.c \
	%D%/metrics.h \
	%D%/output.c \
	%D%/output.h \
	%D%/prepare.c \
	%D%/prepare.h \
	%D%/schedule.c \
	%D%/schedule.h \
	%D%/snapshot.c \
	%D%/snapshot.h \
	%D%/trace.c \
	%D%/trace.h \
	%D%/trainer.c \
	%D%/trainer.h \
	%D%/trainer_plan.c \
	%D%/weights.c \
	%D%/weights.h
