# tests/daemon

# A small real job, and what the checks of the shim and the runner share.
check_PROGRAMS += tests/daemon/job_helper
tests_daemon_job_helper_SOURCES = tests/daemon/job_helper.c

check_PROGRAMS += tests/daemon/check_shim
TESTS += tests/daemon/check_shim
tests_daemon_check_shim_SOURCES = tests/daemon/check_shim.c tests/daemon/shim_run.c tests/daemon/shim_run.h
tests_daemon_check_shim_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_shim_LDADD = $(JANSSON_LIBS) $(TEST_LIBS)
EXTRA_tests_daemon_check_shim_DEPENDENCIES = daemon/traind-shim tests/daemon/job_helper

check_PROGRAMS += tests/daemon/check_runner
TESTS += tests/daemon/check_runner
tests_daemon_check_runner_SOURCES = tests/daemon/check_runner.c tests/daemon/runner_run.c tests/daemon/runner_run.h \
	tests/daemon/shim_run.c tests/daemon/shim_run.h
tests_daemon_check_runner_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_runner_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_daemon_check_runner_LDADD = daemon/libdaemon.a proto/libproto.a tests/lib/liboom.a $(UV_LIBS) $(JANSSON_LIBS) $(TEST_LIBS)
EXTRA_tests_daemon_check_runner_DEPENDENCIES = daemon/traind-shim

check_PROGRAMS += tests/daemon/check_probe
TESTS += tests/daemon/check_probe
tests_daemon_check_probe_SOURCES = tests/daemon/check_probe.c tests/daemon/runner_run.c tests/daemon/runner_run.h \
	tests/daemon/shim_run.c tests/daemon/shim_run.h
tests_daemon_check_probe_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_probe_LDADD = daemon/libdaemon.a proto/libproto.a $(UV_LIBS) $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_inventory
TESTS += tests/daemon/check_inventory
tests_daemon_check_inventory_SOURCES = tests/daemon/check_inventory.c
tests_daemon_check_inventory_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_inventory_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_daemon_check_inventory_LDADD = daemon/libdaemon.a proto/libproto.a tests/lib/liboom.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_shim_pipes tests/daemon/check_shim_record tests/daemon/check_shim_root
TESTS += tests/daemon/check_shim_pipes tests/daemon/check_shim_record tests/daemon/check_shim_root
tests_daemon_check_shim_pipes_SOURCES = tests/daemon/check_shim_pipes.c
tests_daemon_check_shim_pipes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_shim_pipes_LDADD = daemon/libshim.a $(TEST_LIBS)
tests_daemon_check_shim_record_SOURCES = tests/daemon/check_shim_record.c
tests_daemon_check_shim_record_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_shim_record_LDADD = daemon/libshim.a $(JANSSON_LIBS) $(TEST_LIBS)
tests_daemon_check_shim_root_SOURCES = tests/daemon/check_shim_root.c tests/daemon/shim_run.c tests/daemon/shim_run.h
tests_daemon_check_shim_root_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_shim_root_LDADD = daemon/libdaemon.a proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)
EXTRA_tests_daemon_check_shim_root_DEPENDENCIES = daemon/traind-shim tests/daemon/job_helper

DAEMON_LIBS = daemon/libdaemon.a proto/libproto.a $(UV_LIBS) $(SQLITE_LIBS) $(JANSSON_LIBS) $(MATH_LIBS)

check_PROGRAMS += tests/daemon/check_sched
TESTS += tests/daemon/check_sched
tests_daemon_check_sched_SOURCES = tests/daemon/check_sched.c
tests_daemon_check_sched_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_sched_LDADD = $(DAEMON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_job
TESTS += tests/daemon/check_job
tests_daemon_check_job_SOURCES = tests/daemon/check_job.c
tests_daemon_check_job_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_job_LDADD = $(DAEMON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_store
TESTS += tests/daemon/check_store
tests_daemon_check_store_SOURCES = tests/daemon/check_store.c
tests_daemon_check_store_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_store_LDADD = $(DAEMON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_daemon
TESTS += tests/daemon/check_daemon
tests_daemon_check_daemon_SOURCES = tests/daemon/check_daemon.c tests/daemon/box.c tests/daemon/box.h
tests_daemon_check_daemon_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_daemon_LDADD = $(DAEMON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_session
TESTS += tests/daemon/check_session
tests_daemon_check_session_SOURCES = tests/daemon/check_session.c tests/daemon/box.c tests/daemon/box.h
tests_daemon_check_session_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_session_LDADD = $(DAEMON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_tail
TESTS += tests/daemon/check_tail
tests_daemon_check_tail_SOURCES = tests/daemon/check_tail.c
tests_daemon_check_tail_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_tail_LDADD = daemon/libdaemon.a $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_config
TESTS += tests/daemon/check_config
tests_daemon_check_config_SOURCES = tests/daemon/check_config.c
tests_daemon_check_config_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_config_LDADD = $(DAEMON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_record
TESTS += tests/daemon/check_record
tests_daemon_check_record_SOURCES = tests/daemon/check_record.c
tests_daemon_check_record_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_record_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_daemon_check_record_LDADD = $(DAEMON_LIBS) tests/lib/liboom.a $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_rights
TESTS += tests/daemon/check_rights
tests_daemon_check_rights_SOURCES = tests/daemon/check_rights.c tests/daemon/box.c tests/daemon/box.h
tests_daemon_check_rights_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_rights_LDADD = $(DAEMON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_queue
TESTS += tests/daemon/check_queue
tests_daemon_check_queue_SOURCES = tests/daemon/check_queue.c tests/daemon/box.c tests/daemon/box.h
tests_daemon_check_queue_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_queue_LDADD = $(DAEMON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/daemon/check_sched_sim
TESTS += tests/daemon/check_sched_sim
tests_daemon_check_sched_sim_SOURCES = tests/daemon/check_sched_sim.c
tests_daemon_check_sched_sim_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_daemon_check_sched_sim_LDADD = $(DAEMON_LIBS) $(TEST_LIBS)
