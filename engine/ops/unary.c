#include "engine/ops/unary.h"

int unary_build(struct build *build, const char *op, const void *attr, size_t attr_size,
                struct value *input, struct value **ret_out, struct err *err)
{
    struct node *node = build_node(build, op, PHASE_FORWARD, attr, attr_size, err);
    if (node == NULL)
        return err->code;
    build_in(node, input);
    *ret_out = build_out(build, node, input->shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}
