# tests/client
check_PROGRAMS += tests/client/check_args tests/client/check_locate tests/client/check_render
TESTS += tests/client/check_args tests/client/check_locate tests/client/check_render

tests_client_check_args_SOURCES = tests/client/check_args.c
tests_client_check_args_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_client_check_args_LDADD = $(CLIENT_LIBS) $(TEST_LIBS)

tests_client_check_locate_SOURCES = tests/client/check_locate.c
tests_client_check_locate_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_client_check_locate_LDADD = $(CLIENT_LIBS) $(TEST_LIBS)

tests_client_check_render_SOURCES = tests/client/check_render.c
tests_client_check_render_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_client_check_render_LDADD = $(CLIENT_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/client/check_oom
TESTS += tests/client/check_oom
tests_client_check_oom_SOURCES = tests/client/check_oom.c
tests_client_check_oom_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_client_check_oom_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_client_check_oom_LDADD = tests/lib/liboom.a $(CLIENT_LIBS) $(TEST_LIBS)

# End to end: the built trainctl against a scripted daemon on a real socket.
check_LIBRARIES += tests/client/libpeer.a
tests_client_libpeer_a_SOURCES = \
	tests/client/peer.c tests/client/peer.h \
	tests/client/run.c tests/client/run.h
tests_client_libpeer_a_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)

check_PROGRAMS += tests/client/check_changes tests/client/check_commands tests/client/check_terminal tests/client/check_tools
TESTS += tests/client/check_changes tests/client/check_commands tests/client/check_terminal tests/client/check_tools

tests_client_check_changes_SOURCES = tests/client/check_changes.c
tests_client_check_changes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_client_check_changes_LDADD = tests/client/libpeer.a $(TEST_LIBS) $(JANSSON_LIBS)

tests_client_check_commands_SOURCES = tests/client/check_commands.c
tests_client_check_commands_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_client_check_commands_LDADD = tests/client/libpeer.a $(TEST_LIBS) $(JANSSON_LIBS)

tests_client_check_terminal_SOURCES = tests/client/check_terminal.c
tests_client_check_terminal_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_client_check_terminal_LDADD = tests/client/libpeer.a $(TEST_LIBS) $(JANSSON_LIBS)

tests_client_check_tools_SOURCES = tests/client/check_tools.c
tests_client_check_tools_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_client_check_tools_LDADD = tests/client/libpeer.a $(TEST_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/client/check_chart
TESTS += tests/client/check_chart
tests_client_check_chart_SOURCES = tests/client/check_chart.c
tests_client_check_chart_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_client_check_chart_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_client_check_chart_LDADD = tests/lib/liboom.a $(CLIENT_LIBS) $(PNG_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/client/check_plot
TESTS += tests/client/check_plot
tests_client_check_plot_SOURCES = tests/client/check_plot.c
tests_client_check_plot_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_client_check_plot_LDADD = tests/client/libpeer.a $(TEST_LIBS) $(JANSSON_LIBS)
