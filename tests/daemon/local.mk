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
