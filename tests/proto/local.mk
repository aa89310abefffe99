# tests/proto
check_PROGRAMS += tests/proto/check_err
TESTS += tests/proto/check_err
tests_proto_check_err_SOURCES = tests/proto/check_err.c
tests_proto_check_err_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_err_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_json
TESTS += tests/proto/check_json
tests_proto_check_json_SOURCES = tests/proto/check_json.c
tests_proto_check_json_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_json_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_job_parallel
TESTS += tests/proto/check_job_parallel
tests_proto_check_job_parallel_SOURCES = tests/proto/check_job_parallel.c tests/proto/bad_jobs.h
tests_proto_check_job_parallel_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_job_parallel_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_job_queue
TESTS += tests/proto/check_job_queue
tests_proto_check_job_queue_SOURCES = tests/proto/check_job_queue.c tests/proto/jobs.h
tests_proto_check_job_queue_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_job_queue_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_device_id
TESTS += tests/proto/check_device_id
tests_proto_check_device_id_SOURCES = tests/proto/check_device_id.c
tests_proto_check_device_id_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_device_id_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_rpc
TESTS += tests/proto/check_rpc
tests_proto_check_rpc_SOURCES = tests/proto/check_rpc.c
tests_proto_check_rpc_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_rpc_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_methods
TESTS += tests/proto/check_methods
tests_proto_check_methods_SOURCES = tests/proto/check_methods.c
tests_proto_check_methods_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_methods_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_report
TESTS += tests/proto/check_report
tests_proto_check_report_SOURCES = tests/proto/check_report.c
tests_proto_check_report_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_report_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_job
TESTS += tests/proto/check_job
tests_proto_check_job_SOURCES = tests/proto/check_job.c tests/proto/bad_jobs.h tests/proto/bad_values.def tests/proto/bad_rules.def tests/proto/jobs.h
tests_proto_check_job_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_job_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_preset
TESTS += tests/proto/check_preset
tests_proto_check_preset_SOURCES = tests/proto/check_preset.c
tests_proto_check_preset_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_preset_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_job_schema
TESTS += tests/proto/check_job_schema
tests_proto_check_job_schema_SOURCES = tests/proto/check_job_schema.c tests/proto/bad_jobs.h tests/proto/bad_values.def tests/proto/bad_rules.def tests/proto/jobs.h proto/job_schema.c proto/job_schema.h
tests_proto_check_job_schema_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_job_schema_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_oom
TESTS += tests/proto/check_oom
tests_proto_check_oom_SOURCES = tests/proto/check_oom.c tests/proto/jobs.h proto/job_schema.c proto/job_schema.h
tests_proto_check_oom_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_oom_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_proto_check_oom_LDADD = tests/lib/liboom.a proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/proto/check_job_fields
TESTS += tests/proto/check_job_fields
tests_proto_check_job_fields_SOURCES = tests/proto/check_job_fields.c
tests_proto_check_job_fields_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_proto_check_job_fields_LDADD = proto/libproto.a $(JANSSON_LIBS) $(TEST_LIBS)
