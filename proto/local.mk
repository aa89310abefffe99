# proto: the contracts as code. jansson only, no I/O (but for descriptors.c).
noinst_LIBRARIES += proto/libproto.a
proto_libproto_a_SOURCES = \
	proto/descriptors.c \
	proto/descriptors.h \
	proto/device_id.c \
	proto/device_id.h \
	proto/err.c \
	proto/err.h \
	proto/job.c \
	proto/job.h \
	proto/job_check.c \
	proto/job_check.h \
	proto/job_check_data.c \
	proto/job_check_parallel.c \
	proto/job_data.c \
	proto/job_data.h \
	proto/job_duration.c \
	proto/job_fields.c \
	proto/job_fields.h \
	proto/job_init.c \
	proto/job_kinds.c \
	proto/job_kinds.h \
	proto/job_layer.h \
	proto/job_layers.c \
	proto/job_learning.c \
	proto/job_lists.c \
	proto/job_maps.c \
	proto/job_marks.c \
	proto/job_model.h \
	proto/job_parallel.h \
	proto/job_queue.h \
	proto/job_rows.h \
	proto/job_scalars.c \
	proto/job_train.h \
	proto/job_values.h \
	proto/job_shorthand.c \
	proto/json.c \
	proto/json.h \
	proto/json_write.c \
	proto/layer_init.h \
	proto/limits.h \
	proto/methods.c \
	proto/methods.h \
	proto/preset.c \
	proto/preset.h \
	proto/preset_fields.c \
	proto/preset_gpt.c \
	proto/preset_resnet.c \
	proto/report.c \
	proto/report.h \
	proto/rpc.c \
	proto/rpc.h \
	proto/state.c \
	proto/state.h

# The published form of the job document, kept equal to the tables by tests/proto/check_job_schema.c.
dist_pkgdata_DATA = proto/job.schema.json
EXTRA_PROGRAMS += proto/job-schema
CLEANFILES += proto/job-schema
proto_job_schema_SOURCES = proto/job_schema.c proto/job_schema.h proto/job_schema_main.c
proto_job_schema_LDADD = proto/libproto.a $(JANSSON_LIBS)
schema: proto/job-schema
	proto/job-schema > $(srcdir)/proto/job.schema.json
.PHONY: schema
