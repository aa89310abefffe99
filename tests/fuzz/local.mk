# Fuzz targets: built on demand, in a build of clang's with its sanitizers (scripts/fuzz does both).
FUZZ_TARGETS = tests/fuzz/fuzz_csv tests/fuzz/fuzz_idx tests/fuzz/fuzz_job tests/fuzz/fuzz_npy tests/fuzz/fuzz_rpc \
	tests/fuzz/fuzz_safetensors
FUZZ_SOURCES = tests/fuzz/fuzz.c tests/fuzz/fuzz.h
FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer
FUZZ_LIBS = engine/libengine.a proto/libproto.a $(JANSSON_LIBS) $(ZLIB_LIBS) $(MATH_LIBS) -lpthread
EXTRA_PROGRAMS += $(FUZZ_TARGETS)
CLEANFILES += $(FUZZ_TARGETS)
tests_fuzz_fuzz_csv_SOURCES = tests/fuzz/fuzz_csv.c $(FUZZ_SOURCES)
tests_fuzz_fuzz_csv_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_csv_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_idx_SOURCES = tests/fuzz/fuzz_idx.c $(FUZZ_SOURCES)
tests_fuzz_fuzz_idx_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_idx_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_job_SOURCES = tests/fuzz/fuzz_job.c $(FUZZ_SOURCES)
tests_fuzz_fuzz_job_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_job_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_npy_SOURCES = tests/fuzz/fuzz_npy.c $(FUZZ_SOURCES)
tests_fuzz_fuzz_npy_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_npy_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_rpc_SOURCES = tests/fuzz/fuzz_rpc.c $(FUZZ_SOURCES)
tests_fuzz_fuzz_rpc_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_rpc_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_safetensors_SOURCES = tests/fuzz/fuzz_safetensors.c $(FUZZ_SOURCES)
tests_fuzz_fuzz_safetensors_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_safetensors_LDADD = $(FUZZ_LIBS)
EXTRA_DIST += \
	tests/fuzz/corpus/csv/broken \
	tests/fuzz/corpus/csv/header \
	tests/fuzz/corpus/csv/plain \
	tests/fuzz/corpus/csv/table.gz \
	tests/fuzz/corpus/idx/floats.gz \
	tests/fuzz/corpus/idx/images \
	tests/fuzz/corpus/job/csv.json \
	tests/fuzz/corpus/job/digits.json \
	tests/fuzz/corpus/job/inputs.json \
	tests/fuzz/corpus/job/preset.json \
	tests/fuzz/corpus/npy/objects \
	tests/fuzz/corpus/npy/v1 \
	tests/fuzz/corpus/npy/v3 \
	tests/fuzz/corpus/rpc/call \
	tests/fuzz/corpus/rpc/calls \
	tests/fuzz/corpus/safetensors/empty \
	tests/fuzz/corpus/safetensors/two

.PHONY: fuzz-targets
fuzz-targets: $(FUZZ_TARGETS)
