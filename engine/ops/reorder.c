/* reorder.c: the same tensor in another layout, which only a planner appends, or in another type,
 * which only precision.c does. */
#include "engine/ops/registry.h"

const struct op_def op_reorder = {.name = "reorder"};
const struct op_def op_cast = {.name = "cast"};
