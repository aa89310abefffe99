# client: trainctl. Talks only the public protocol.
bin_PROGRAMS += client/trainctl
noinst_LIBRARIES += client/libclient.a
client_libclient_a_SOURCES = \
	client/args.c client/args.h \
	client/base64.c client/base64.h \
	client/cmd.c \
	client/cmd_change.c \
	client/cmd_check.c \
	client/cmd_completion.c \
	client/cmd_devices.c \
	client/cmd_drain.c \
	client/cmd_info.c \
	client/cmd_list.c \
	client/cmd_logs.c \
	client/cmd_model.c \
	client/cmd_plot.c \
	client/cmd_show.c \
	client/cmd_submit.c \
	client/cmd_top.c \
	client/cmd_tune.c \
	client/cmd_wait.c \
	client/cmd_watch.c \
	client/cmd_weights.c \
	client/conn.c client/conn.h \
	client/ctl.c client/ctl.h \
	client/document.c client/document.h \
	client/follow.c client/follow.h \
	client/follow_view.c client/follow_view.h \
	client/locate.c client/locate.h \
	client/metrics.c client/metrics.h \
	client/plan.c client/plan.h \
	client/plan_profile.c client/plan_profile.h \
	client/submit.h \
	client/record.c client/record.h \
	client/render/bar.c client/render/bar.h \
	client/render/canvas.h \
	client/render/canvas_png.c \
	client/render/canvas_svg.c \
	client/render/chart.c client/render/chart.h \
	client/render/overview.c client/render/overview.h \
	client/render/plot.c client/render/plot.h \
	client/render/progress.c client/render/progress.h \
	client/render/sparkline.c client/render/sparkline.h \
	client/render/style.h \
	client/render/summary.c client/render/summary.h \
	client/render/table.c client/render/table.h \
	client/render/text.c client/render/text.h \
	client/render/units.c client/render/units.h \
	client/screen.c client/screen.h \
	client/terminal.c client/terminal.h \
	client/worker.c client/worker.h
CLIENT_LIBS = client/libclient.a proto/libproto.a $(JANSSON_LIBS) $(CAIRO_LIBS) $(NCURSES_LIBS) \
	$(MATH_LIBS)
client_trainctl_SOURCES = client/main.c
client_trainctl_LDADD = $(CLIENT_LIBS)
