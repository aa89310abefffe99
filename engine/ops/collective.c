/* collective.c: ops on a run of gradient variables, which lie one behind the other: the first and
 * the last name the run, so its other variables are written too; and what replicas tell each other
 * of a value. */
#include "engine/ops/attr.h"
#include "engine/ops/registry.h"

int gather_parts_build(struct build *build, struct value *parameter, int64_t share, struct err *err)
{
    const struct gather_parts_attr attr = {.share = share};
    struct node *node = build_node(build, "gather_parts", PHASE_UPDATE, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, parameter);
    return 0;
}

const struct op_def op_zero = {.name = "zero", .mutates = 1u << 0 | 1u << 1};
const struct op_def op_scale = {.name = "scale", .mutates = 1u << 0 | 1u << 1};
const struct op_def op_all_reduce = {
    .name = "all_reduce", .mutates = 1u << 0 | 1u << 1, .shared = true};
const struct op_def op_all_reduce_start = {
    .name = "all_reduce_start", .mutates = 1u << 0 | 1u << 1, .shared = true};
const struct op_def op_gather_replicas = {.name = "gather_replicas", .shared = true, .kept = true};
const struct op_def op_sum_replicas = {.name = "sum_replicas", .shared = true};
const struct op_def op_gather_parts = {.name = "gather_parts", .mutates = 1u << 0, .shared = true};
