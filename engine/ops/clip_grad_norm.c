/* clip_grad_norm.c: torch.nn.utils.clip_grad_norm_, the L2 norm of all gradients together. Every
 * replica has the same gradients, so every replica finds the same scale. */
#include "engine/ops/attr.h"
#include "engine/ops/registry.h"

int clip_grad_norm_build(struct build *build, struct value *first, struct value *last,
                         struct value **ret_scale, struct err *err)
{
    const struct clip_grad_norm_attr attr = {.max_norm = build_job(build)->train.clip_grad_norm};
    struct node *node = build_node(build, "clip_grad_norm", PHASE_UPDATE, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, first);
    build_in(node, last);
    *ret_scale = build_out(build, node, SHAPE(1), DTYPE_F32, err);
    return *ret_scale == NULL ? err->code : 0;
}

const struct op_def op_clip_grad_norm = {.name = "clip_grad_norm"};
