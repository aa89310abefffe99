/* collective.c: ops on a run of gradient variables, which lie one behind the other. The first and
 * the last name the run, so its other variables are written too. */
#include "engine/ops/registry.h"

const struct op_def op_zero = {.name = "zero", .mutates = 1u << 0 | 1u << 1};
const struct op_def op_scale = {.name = "scale", .mutates = 1u << 0 | 1u << 1};
const struct op_def op_all_reduce = {.name = "all_reduce", .mutates = 1u << 0 | 1u << 1};
