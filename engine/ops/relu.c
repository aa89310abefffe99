/* relu.c: torch.nn.ReLU. Its gradient reads the output: the input may be overwritten. */
#include "engine/ops/grad.h"
#include "engine/ops/registry.h"

static int relu_build(struct build *build, const struct job_layer *layer, struct value *const *in,
                      int n_in, struct value **ret_out, struct err *err)
{
    (void)layer;
    (void)n_in;
    struct node *node = build_node(build, "relu", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    *ret_out = build_out(build, node, in[0]->shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

static int relu_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                     struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "relu_grad", node->out[0], out_grad[0], in_grad, err);
}

const struct op_def op_relu = {
    .name = "relu", .build = relu_build, .grad = relu_grad, .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_relu_grad = {.name = "relu_grad", .low = {LOW_AS_FIRST, 3, 1}};
