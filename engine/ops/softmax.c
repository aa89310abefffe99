/* softmax.c: torch.nn.Softmax and LogSoftmax. Both gradients are functions of the output. */
#include "engine/ops/attr.h"
#include "engine/ops/dim.h"
#include "engine/ops/grad.h"
#include "engine/ops/registry.h"
#include "engine/ops/unary.h"

static int softmax_build(struct build *build, const struct job_layer *layer,
                         struct value *const *in, int n_in, struct value **ret_out, struct err *err)
{
    (void)n_in;
    const char *op = layer->type == LAYER_LOGSOFTMAX ? "log_softmax" : "softmax";
    struct softmax_attr attr;
    int rc = dim_resolve(build, layer, &in[0]->shape, &attr.dim, err);
    return rc != 0 ? rc : unary_build(build, op, &attr, sizeof attr, in[0], ret_out, err);
}

static int softmax_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                        struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "softmax_grad", node->out[0], out_grad[0], in_grad, err);
}

static int log_softmax_grad(struct build *build, const struct node *node,
                            struct value *const *out_grad, struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "log_softmax_grad", node->out[0], out_grad[0], in_grad, err);
}

const struct op_def op_softmax = {.name = "softmax", .build = softmax_build, .grad = softmax_grad};
const struct op_def op_softmax_grad = {.name = "softmax_grad"};
const struct op_def op_log_softmax = {
    .name = "log_softmax", .build = softmax_build, .grad = log_softmax_grad};
const struct op_def op_log_softmax_grad = {.name = "log_softmax_grad"};
