# tests/system: real daemon, shim, worker and client; pytest, printing TAP like every other check.
TESTS += tests/system/check_system
dist_check_SCRIPTS += tests/system/check_system
EXTRA_DIST += tests/system/combinations.py tests/system/conftest.py tests/system/traind.py \
	tests/system/test_combinations.py tests/system/test_completion.py tests/system/test_converter.py tests/system/test_cuda.py \
	tests/system/test_daemon.py tests/system/test_detach.py tests/system/test_drain.py tests/system/test_faults.py tests/system/test_hand_made.py \
	tests/system/test_jobs.py tests/system/test_recovery.py tests/system/test_shapes.py \
	tests/system/test_systemd.py tests/system/test_top.py tests/system/test_tune.py tests/system/test_update.py tests/system/test_users.py tests/system/test_worker.py
