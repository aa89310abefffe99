# proto: the contracts as code. jansson only, no I/O.
noinst_LIBRARIES += proto/libproto.a
proto_libproto_a_SOURCES = \
	proto/device_id.h \
	proto/err.h \
	proto/job.h \
	proto/json.h \
	proto/limits.h \
	proto/methods.h \
	proto/report.h \
	proto/rpc.h \
	proto/state.h
