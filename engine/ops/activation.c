/* activation.c: torch.nn.GELU, SiLU, Sigmoid and Tanh.
 *
 * The gradients of GELU and SiLU read the input; those of Sigmoid and Tanh are functions of the
 * output, so that their input may be overwritten. */
#include "engine/ops/attr.h"
#include "engine/ops/grad.h"
#include "engine/ops/registry.h"
#include "engine/ops/unary.h"

static int gelu_build(struct build *build, const struct job_layer *layer, struct value *const *in,
                      int n_in, struct value **ret_out, struct err *err)
{
    (void)n_in;
    const struct gelu_attr attr = {.tanh = layer->gelu.tanh};
    return unary_build(build, "gelu", &attr, sizeof attr, in[0], ret_out, err);
}

static int gelu_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                     struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "gelu_grad", node->in[0], out_grad[0], in_grad, err);
}

static int silu_build(struct build *build, const struct job_layer *layer, struct value *const *in,
                      int n_in, struct value **ret_out, struct err *err)
{
    (void)layer;
    (void)n_in;
    return unary_build(build, "silu", NULL, 0, in[0], ret_out, err);
}

static int silu_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                     struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "silu_grad", node->in[0], out_grad[0], in_grad, err);
}

static int sigmoid_build(struct build *build, const struct job_layer *layer,
                         struct value *const *in, int n_in, struct value **ret_out, struct err *err)
{
    (void)layer;
    (void)n_in;
    return unary_build(build, "sigmoid", NULL, 0, in[0], ret_out, err);
}

static int sigmoid_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                        struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "sigmoid_grad", node->out[0], out_grad[0], in_grad, err);
}

static int tanh_build(struct build *build, const struct job_layer *layer, struct value *const *in,
                      int n_in, struct value **ret_out, struct err *err)
{
    (void)layer;
    (void)n_in;
    return unary_build(build, "tanh", NULL, 0, in[0], ret_out, err);
}

static int tanh_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                     struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "tanh_grad", node->out[0], out_grad[0], in_grad, err);
}

const struct op_def op_gelu = {
    .name = "gelu", .build = gelu_build, .grad = gelu_grad, .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_gelu_grad = {.name = "gelu_grad", .low = {LOW_AS_FIRST, 3, 1}};
const struct op_def op_silu = {
    .name = "silu", .build = silu_build, .grad = silu_grad, .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_silu_grad = {.name = "silu_grad", .low = {LOW_AS_FIRST, 3, 1}};
const struct op_def op_sigmoid = {
    .name = "sigmoid", .build = sigmoid_build, .grad = sigmoid_grad, .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_sigmoid_grad = {.name = "sigmoid_grad", .low = {LOW_AS_FIRST, 3, 1}};
const struct op_def op_tanh = {
    .name = "tanh", .build = tanh_build, .grad = tanh_grad, .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_tanh_grad = {.name = "tanh_grad", .low = {LOW_AS_FIRST, 3, 1}};
