# daemon: traind and traind-shim. libuv, jansson, SQLite; never CUDA or oneDNN.
noinst_LIBRARIES += daemon/libdaemon.a
daemon_libdaemon_a_SOURCES = \
	daemon/inventory.h \
	daemon/runner.h
