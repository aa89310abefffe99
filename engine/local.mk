# engine: base < graph < ops < backend.h < plan < exec < comm < parallel < data < train < worker.
# A folder includes only from folders to its left, and from proto.
noinst_LIBRARIES += engine/libengine.a
engine_libengine_a_SOURCES =
include engine/base/local.mk
include engine/graph/local.mk
include engine/ops/local.mk
include engine/backend/local.mk
include engine/plan/local.mk
include engine/exec/local.mk
include engine/comm/local.mk
include engine/parallel/local.mk
include engine/data/local.mk
include engine/train/local.mk
include engine/worker/local.mk
