# tests/engine
check_PROGRAMS += tests/engine/check_chunk tests/engine/check_comm
TESTS += tests/engine/check_chunk tests/engine/check_comm
ENGINE_TEST_LIBS = engine/libengine.a proto/libproto.a $(TEST_LIBS) $(JANSSON_LIBS) $(DNNL_LIBS) $(GOMP_LIBS) $(ZLIB_LIBS) $(MATH_LIBS) -lpthread
tests_engine_check_chunk_SOURCES = tests/engine/check_chunk.c
tests_engine_check_chunk_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_engine_check_chunk_LDADD = $(ENGINE_TEST_LIBS)
tests_engine_check_comm_SOURCES = tests/engine/check_comm.c
tests_engine_check_comm_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_engine_check_comm_LDADD = $(ENGINE_TEST_LIBS)
