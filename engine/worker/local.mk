engine_libengine_a_SOURCES += \
	%D%/document.c \
	%D%/document.h \
	%D%/machine.c \
	%D%/machine.h \
	%D%/reporter.c \
	%D%/reporter.h \
	%D%/setup.c \
	%D%/setup.h

pkglibexec_PROGRAMS += engine/worker/traind-worker
engine_worker_traind_worker_SOURCES = \
	%D%/command.h \
	%D%/main.c \
	%D%/plan.c \
	%D%/plan_profile.c \
	%D%/plan_profile.h \
	%D%/plan_stages.c \
	%D%/plan_stages.h \
	%D%/probe.c \
	%D%/run.c \
	%D%/weights.c
engine_worker_traind_worker_LDADD = engine/libengine.a proto/libproto.a $(JANSSON_LIBS) \
	$(DNNL_LIBS) $(GOMP_LIBS) $(ZLIB_LIBS) $(JPEG_LIBS) $(PNG_LIBS) $(MATH_LIBS) -lpthread
