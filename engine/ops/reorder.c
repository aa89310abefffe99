/* reorder.c: the same tensor in another layout; only a planner appends it. */
#include "engine/ops/registry.h"

const struct op_def op_reorder = {.name = "reorder"};
