# tests mirror the source path: tests/proto/check_job.c tests proto/job.c.
# Tests share the machine: who waits for its team must not spin.
AM_TESTS_ENVIRONMENT = \
	OMP_WAIT_POLICY=passive; export OMP_WAIT_POLICY; \
	TRAIND_TEST_BUILD='$(abs_top_builddir)'; export TRAIND_TEST_BUILD; \
	TRAIND_TEST_SOURCE='$(abs_top_srcdir)'; export TRAIND_TEST_SOURCE;
include tests/lib/local.mk
include tests/fuzz/local.mk
if HAVE_CHECK
include tests/proto/local.mk
include tests/ref/local.mk
include tests/engine/local.mk
include tests/golden/local.mk
include tests/daemon/local.mk
include tests/client/local.mk
include tests/system/local.mk
EXTRA_DIST += tests/cudasim/cublas.map tests/cudasim/cudart.map tests/cudasim/cublaslt.map tests/cudasim/cudnn.map \
	tests/cudasim/nccl.map tests/cudasim/golden.txt tests/cudasim/generate.py
if HAVE_CUDA
include tests/cudasim/libraries.mk
endif
endif
