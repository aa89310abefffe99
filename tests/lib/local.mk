# tests/lib: what all checks share.
check_LIBRARIES += tests/lib/libtests.a
tests_lib_libtests_a_SOURCES = tests/lib/apart.c tests/lib/apart.h tests/lib/checks.c \
	tests/lib/checks.h
check_LIBRARIES += tests/lib/liboom.a
tests_lib_liboom_a_SOURCES = tests/lib/oom.c tests/lib/oom.h
TEST_LIBS = tests/lib/libtests.a $(CHECK_LIBS)
OOM_FLAGS = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup
