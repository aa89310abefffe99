# proto: the contracts as code. jansson only, no I/O.
noinst_LIBRARIES += proto/libproto.a
proto_libproto_a_SOURCES = \
	proto/device_id.c \
	proto/device_id.h \
	proto/err.c \
	proto/err.h \
	proto/job.c \
	proto/job.h \
	proto/job_check.c \
	proto/job_check.h \
	proto/job_fields.c \
	proto/job_fields.h \
	proto/job_kinds.c \
	proto/job_kinds.h \
	proto/job_layers.c \
	proto/job_rows.h \
	proto/json.c \
	proto/json.h \
	proto/json_write.c \
	proto/limits.h \
	proto/methods.c \
	proto/methods.h \
	proto/report.c \
	proto/report.h \
	proto/rpc.c \
	proto/rpc.h \
	proto/state.c \
	proto/state.h
