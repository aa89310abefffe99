/* batch_norm_relu.c: a BatchNorm, the sum with another tensor where there is one, and a ReLU: what
 * a residual block is made of, without the values in between. Its gradient reads x, and with a
 * residual y: without, whether y is positive follows from x. */
#include "engine/ops/attr.h"
#include "engine/ops/grad.h"
#include "engine/ops/registry.h"

enum { X, WEIGHT, BIAS, RESIDUAL = 6 }; /* inputs */
enum { Y, MEAN, SPREAD };               /* outputs */

static int out_gradients(struct build *build, const struct node *node, struct node *grad,
                         struct err *err)
{
    for (int i = WEIGHT; i <= BIAS; i++) {
        struct value *gradient = NULL;
        if (node->in[i] != NULL && node->in[i]->needs_grad) {
            gradient = build_gradient(build, node->in[i], err);
            if (gradient == NULL)
                return err->code;
        }
        build_out_value(grad, gradient);
    }
    return 0;
}

static int batch_norm_relu_grad(struct build *build, const struct node *node,
                                struct value *const *out_grad, struct value **in_grad,
                                struct err *err)
{
    struct value *x = node->in[X], *residual = node->n_in > RESIDUAL ? node->in[RESIDUAL] : NULL;
    struct node *grad = build_grad_node(build, "batch_norm_relu_grad", PHASE_INPUT_GRAD, node, err);
    if (grad == NULL)
        return err->code;
    build_in(grad, x);
    build_in(grad, out_grad[Y]);
    build_in(grad, node->in[WEIGHT]);
    build_in(grad, node->in[BIAS]);
    build_in(grad, node->out[MEAN]);
    build_in(grad, node->out[SPREAD]);
    if (residual != NULL)
        build_in(grad, node->out[Y]);
    struct value *input_grad = build_out(build, grad, x->shape, DTYPE_F32, err);
    if (input_grad == NULL)
        return err->code;
    in_grad[X] = x->needs_grad ? input_grad : NULL;
    int rc = out_gradients(build, node, grad, err);
    if (rc != 0 || residual == NULL)
        return rc;
    struct value *residual_grad = build_out(build, grad, residual->shape, DTYPE_F32, err);
    if (residual_grad == NULL)
        return err->code;
    in_grad[RESIDUAL] = residual->needs_grad ? residual_grad : NULL;
    return 0;
}

/* As the sum of the two would be typed: F32 where one of them is. */
const struct op_def op_batch_norm_relu = {.name = "batch_norm_relu",
                                          .grad = batch_norm_relu_grad,
                                          .mutates = 1u << 3 | 1u << 4 | 1u << 5,
                                          .low = {LOW_IF_ALL, 1u | 1u << RESIDUAL, 1}};
const struct op_def op_batch_norm_relu_eval = {.name = "batch_norm_relu_eval",
                                               .low = {LOW_IF_ALL, 1u | 1u << 5, 1}};
const struct op_def op_batch_norm_relu_grad = {
    .name = "batch_norm_relu_grad", .low = {LOW_AS_FIRST, 1u | 1u << 1 | 1u << 6, 1u | 1u << 3}};
