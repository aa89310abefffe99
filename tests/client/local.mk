# tests/client
CLIENT_CHECKS = \
	tests/client/check_args \
	tests/client/check_changes \
	tests/client/check_chart \
	tests/client/check_commands \
	tests/client/check_locate \
	tests/client/check_oom \
	tests/client/check_overview \
	tests/client/check_plot \
	tests/client/check_render \
	tests/client/check_terminal \
	tests/client/check_tools
check_PROGRAMS += $(CLIENT_CHECKS)
TESTS += $(CLIENT_CHECKS)

# trainctl's own functions.
CLIENT_TEST_LIBS = tests/lib/liboom.a $(CLIENT_LIBS) $(PNG_LIBS) $(TEST_LIBS)
tests_client_check_args_LDADD = $(CLIENT_TEST_LIBS)
tests_client_check_chart_LDADD = $(CLIENT_TEST_LIBS)
tests_client_check_chart_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_client_check_locate_LDADD = $(CLIENT_TEST_LIBS)
tests_client_check_oom_LDADD = $(CLIENT_TEST_LIBS)
tests_client_check_oom_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_client_check_overview_LDADD = $(CLIENT_TEST_LIBS)
tests_client_check_render_LDADD = $(CLIENT_TEST_LIBS)

# End to end: the built trainctl against a scripted daemon on a real socket.
check_LIBRARIES += tests/client/libpeer.a
tests_client_libpeer_a_SOURCES = \
	tests/client/peer.c tests/client/peer.h \
	tests/client/run.c tests/client/run.h
PEER_TEST_LIBS = tests/client/libpeer.a $(TEST_LIBS) $(JANSSON_LIBS)
tests_client_check_changes_LDADD = $(PEER_TEST_LIBS)
tests_client_check_commands_LDADD = $(PEER_TEST_LIBS)
tests_client_check_plot_LDADD = $(PEER_TEST_LIBS)
tests_client_check_terminal_LDADD = $(PEER_TEST_LIBS)
tests_client_check_tools_LDADD = $(PEER_TEST_LIBS)
