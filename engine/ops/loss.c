#include "engine/ops/loss.h"

int loss_build(struct build *build, const char *op, struct value *output, struct value *target,
               struct value **ret_loss, struct value **ret_grad, struct err *err)
{
    struct node *node = build_node(build, op, PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, output);
    build_in(node, target);
    *ret_loss = build_out(build, node, SHAPE(1), DTYPE_F64, err);
    if (*ret_loss == NULL)
        return err->code;
    if (ret_grad == NULL)
        return 0;
    *ret_grad = build_out(build, node, output->shape, DTYPE_F32, err);
    return *ret_grad == NULL ? err->code : 0;
}
