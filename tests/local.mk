# tests mirror the source path: tests/proto/check_job.c tests proto/job.c.
include tests/lib/local.mk
if HAVE_CHECK
include tests/proto/local.mk
include tests/ref/local.mk
include tests/engine/local.mk
include tests/golden/local.mk
include tests/daemon/local.mk
include tests/client/local.mk
include tests/system/local.mk
endif
