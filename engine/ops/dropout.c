/* dropout.c: torch.nn.Dropout. The mask is a function of seed, layer, step, sample and element, so
 * the gradient draws it again instead of keeping it. */
#include "engine/ops/attr.h"
#include "engine/ops/grad.h"
#include "engine/ops/registry.h"

static int dropout_build(struct build *build, const struct job_layer *layer,
                         struct value *const *in, int n_in, struct value **ret_out, struct err *err)
{
    (void)n_in;
    const struct dropout_attr attr = {.p = layer->dropout.p, .layer = build_layer(build)};
    if (!build_training(build) || attr.p == 0) {
        *ret_out = in[0];
        return 0;
    }
    struct node *node = build_node(build, "dropout", PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    *ret_out = build_out(build, node, in[0]->shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

static int dropout_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                        struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "dropout_grad", out_grad[0], NULL, in_grad, err);
}

const struct op_def op_dropout = {
    .name = "dropout", .build = dropout_build, .grad = dropout_grad, .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_dropout_grad = {.name = "dropout_grad", .low = {LOW_AS_FIRST, 1, 1}};
