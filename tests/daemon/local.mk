# tests/daemon
DAEMON_CHECKS = \
	tests/daemon/check_config \
	tests/daemon/check_daemon \
	tests/daemon/check_inventory \
	tests/daemon/check_job \
	tests/daemon/check_probe \
	tests/daemon/check_queue \
	tests/daemon/check_record \
	tests/daemon/check_rights \
	tests/daemon/check_runner \
	tests/daemon/check_sched \
	tests/daemon/check_sched_sim \
	tests/daemon/check_session \
	tests/daemon/check_shim \
	tests/daemon/check_shim_pipes \
	tests/daemon/check_shim_record \
	tests/daemon/check_shim_root \
	tests/daemon/check_store \
	tests/daemon/check_tail
check_PROGRAMS += $(DAEMON_CHECKS)
TESTS += $(DAEMON_CHECKS)

# A small real job, and what the checks share.
check_PROGRAMS += tests/daemon/job_helper
check_LIBRARIES += tests/daemon/libdaemon_tests.a
tests_daemon_libdaemon_tests_a_SOURCES = \
	tests/daemon/box.c tests/daemon/box.h \
	tests/daemon/runner_run.c tests/daemon/runner_run.h \
	tests/daemon/shim_run.c tests/daemon/shim_run.h

DAEMON_TEST_LIBS = tests/daemon/libdaemon_tests.a daemon/libdaemon.a proto/libproto.a tests/lib/liboom.a $(TEST_LIBS) \
	$(UV_LIBS) $(SQLITE_LIBS) $(JANSSON_LIBS) $(MATH_LIBS)
SHIM_TEST_LIBS = daemon/libshim.a $(TEST_LIBS) $(JANSSON_LIBS)

tests_daemon_job_helper_LDADD =
tests_daemon_check_config_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_daemon_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_inventory_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_inventory_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_daemon_check_job_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_probe_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_queue_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_record_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_record_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_daemon_check_rights_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_runner_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_runner_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
EXTRA_tests_daemon_check_runner_DEPENDENCIES = daemon/traind-shim
tests_daemon_check_sched_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_sched_sim_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_session_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_shim_LDADD = $(DAEMON_TEST_LIBS)
EXTRA_tests_daemon_check_shim_DEPENDENCIES = daemon/traind-shim tests/daemon/job_helper
tests_daemon_check_shim_pipes_LDADD = $(SHIM_TEST_LIBS)
tests_daemon_check_shim_record_LDADD = $(SHIM_TEST_LIBS)
tests_daemon_check_shim_root_LDADD = $(DAEMON_TEST_LIBS)
EXTRA_tests_daemon_check_shim_root_DEPENDENCIES = daemon/traind-shim tests/daemon/job_helper
tests_daemon_check_store_LDADD = $(DAEMON_TEST_LIBS)
tests_daemon_check_tail_LDADD = $(DAEMON_TEST_LIBS)
