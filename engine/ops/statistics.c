/* statistics.c: what train.record shows of a tensor. It has no gradient: it is only looked at. */
#include "engine/ops/attr.h"
#include "engine/ops/registry.h"

int statistics_build(struct build *build, struct value *x, enum phase phase, bool scaled,
                     struct value **ret_statistics, struct err *err)
{
    const struct statistics_attr attr = {.scaled = scaled};
    struct node *node = build_node(build, "statistics", phase, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, x);
    *ret_statistics = build_out(build, node, SHAPE(STATISTIC_COUNT), DTYPE_F64, err);
    return *ret_statistics == NULL ? err->code : 0;
}

const struct op_def op_statistics = {.name = "statistics"};
