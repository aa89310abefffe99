# daemon: traind and traind-shim. libuv, jansson, SQLite; never CUDA or oneDNN.
noinst_LIBRARIES += daemon/libdaemon.a
daemon_libdaemon_a_SOURCES = \
	daemon/after.c daemon/after.h \
	daemon/base64.c daemon/base64.h \
	daemon/change.c \
	daemon/config.c daemon/config.h \
	daemon/daemon.c daemon/daemon.h \
	daemon/drain.c daemon/drain.h \
	daemon/detach.c daemon/detach.h \
	daemon/devset.c daemon/devset.h \
	daemon/evidence.c daemon/evidence.h \
	daemon/inventory.c daemon/inventory.h \
	daemon/job.c daemon/job.h \
	daemon/jobs.c daemon/jobs.h \
	daemon/journal.c daemon/journal.h \
	daemon/launch.c daemon/launch.h \
	daemon/limits.c daemon/limits.h \
	daemon/listen.c daemon/listen.h \
	daemon/log.c daemon/log.h \
	daemon/logs.c daemon/logs.h \
	daemon/methods.c daemon/methods.h \
	daemon/probe.c daemon/probe.h \
	daemon/proc.c daemon/proc.h \
	daemon/queue.c \
	daemon/query.c daemon/query.h \
	daemon/record.c daemon/record.h \
	daemon/recover.c daemon/recover.h \
	daemon/runner_job.c daemon/runner_job.h \
	daemon/runner_uv.c \
	daemon/sched.c daemon/sched.h \
	daemon/share.c daemon/share.h \
	daemon/schema.c daemon/schema.h \
	daemon/session.c daemon/session.h \
	daemon/statedir.c daemon/statedir.h \
	daemon/statements.h \
	daemon/store.c daemon/store.h \
	daemon/store_drain.c \
	daemon/store_thread.c daemon/store_thread.h \
	daemon/submit.c \
	daemon/tail.c daemon/tail.h \
	daemon/usage.c daemon/usage.h \
	daemon/verdict.c daemon/verdict.h \
	daemon/wait.c daemon/wait.h \
	daemon/watch.c daemon/watch.h \
	daemon/runner.h

sbin_PROGRAMS += daemon/traind
daemon_traind_SOURCES = daemon/main.c
daemon_traind_LDADD = daemon/libdaemon.a proto/libproto.a \
	$(UV_LIBS) $(SQLITE_LIBS) $(JANSSON_LIBS) $(MATH_LIBS)

# traind-shim: plain C without a library, for it outlives the daemon.
noinst_LIBRARIES += daemon/libshim.a
daemon_libshim_a_SOURCES = \
	daemon/proc.c daemon/proc.h \
	daemon/shim.h \
	daemon/shim_child.c daemon/shim_child.h \
	daemon/shim_oom.c daemon/shim_oom.h \
	daemon/shim_options.c daemon/shim_options.h \
	daemon/shim_pipes.c daemon/shim_pipes.h \
	daemon/shim_reap.c daemon/shim_reap.h \
	daemon/shim_record.c daemon/shim_record.h
pkglibexec_PROGRAMS += daemon/traind-shim
daemon_traind_shim_SOURCES = daemon/shim.c
daemon_traind_shim_LDADD = daemon/libshim.a
