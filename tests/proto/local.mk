# tests/proto
PROTO_CHECKS = \
	tests/proto/check_device_id \
	tests/proto/check_err \
	tests/proto/check_job \
	tests/proto/check_job_fields \
	tests/proto/check_job_parallel \
	tests/proto/check_job_queue \
	tests/proto/check_job_schema \
	tests/proto/check_json \
	tests/proto/check_methods \
	tests/proto/check_oom \
	tests/proto/check_preset \
	tests/proto/check_report \
	tests/proto/check_rpc
check_PROGRAMS += $(PROTO_CHECKS)
TESTS += $(PROTO_CHECKS)

PROTO_TEST_LIBS = tests/lib/liboom.a proto/libproto.a $(TEST_LIBS) $(JANSSON_LIBS)
tests_proto_check_device_id_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_err_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_job_SOURCES = tests/proto/check_job.c tests/proto/bad_jobs.h \
	tests/proto/bad_values.def tests/proto/bad_rules.def tests/proto/jobs.h
tests_proto_check_job_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_job_fields_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_job_parallel_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_job_queue_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_job_schema_SOURCES = tests/proto/check_job_schema.c proto/job_schema.c proto/job_schema.h
tests_proto_check_job_schema_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_json_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_methods_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_oom_SOURCES = tests/proto/check_oom.c proto/job_schema.c proto/job_schema.h
tests_proto_check_oom_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_oom_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_proto_check_preset_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_report_LDADD = $(PROTO_TEST_LIBS)
tests_proto_check_rpc_LDADD = $(PROTO_TEST_LIBS)
