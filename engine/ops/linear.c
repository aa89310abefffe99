/* linear.c: torch.nn.Linear: y = x wᵀ + b on the last dimension, whatever is before it. */
#include <inttypes.h>
#include <math.h>

#include "engine/ops/grad.h"
#include "engine/ops/layer_weights.h"
#include "engine/ops/linear.h"
#include "engine/ops/registry.h"

int linear_apply(struct build *build, struct value *x, struct value *weight, struct value *bias,
                 struct value **ret_out, struct err *err)
{
    struct shape shape = x->shape;
    struct node *node = build_node(build, "linear", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, x);
    build_in(node, weight);
    build_in(node, bias);
    shape.dim[shape.rank - 1] = weight->shape.dim[0];
    *ret_out = build_out(build, node, shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

static int linear_build(struct build *build, const struct job_layer *layer, struct value *const *in,
                        int n_in, struct value **ret_out, struct err *err)
{
    (void)n_in;
    const struct layer_linear *args = &layer->linear;
    struct shape shape = in[0]->shape;
    int64_t features = shape.dim[shape.rank - 1];
    char text[SHAPE_TEXT];
    if (shape.rank < 2)
        return build_shape_error(build, layer, err, "its input %s has no feature dimension",
                                 build_shape_text(&shape, text));
    if (args->in_features != 0 && args->in_features != features)
        return build_shape_error(build, layer, err,
                                 "in_features is %" PRId64 ", but its input %s has %" PRId64,
                                 args->in_features, build_shape_text(&shape, text), features);
    const struct init_rule init = {.kind = INIT_UNIFORM, .bound = 1.0 / sqrt((double)features)};
    struct layer_weights weights;
    int rc = layer_weights_build(build, layer, SHAPE(args->out_features, features), init,
                                 args->bias, &weights, err);
    return rc != 0 ? rc : linear_apply(build, in[0], weights.weight, weights.bias, ret_out, err);
}

static int linear_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                       struct value **in_grad, struct err *err)
{
    int rc = grad_weight(build, node, "linear_weight_grad", out_grad[0], in_grad, err);
    return rc != 0 ? rc : grad_input(build, node, "linear_input_grad", out_grad[0], in_grad, err);
}

/* Rows times features in times features out, of the weight [O, F] and a tensor of rows. */
static double product_flops(const struct shape *weight, const struct shape *rows)
{
    return 2.0 * (double)shape_count(weight) *
           (double)(shape_count(rows) / rows->dim[rows->rank - 1]);
}

static double linear_flops(const struct node *node)
{
    return product_flops(&node->in[1]->shape, &node->in[0]->shape);
}

static double weight_grad_flops(const struct node *node)
{
    return product_flops(&node->out[0]->shape, &node->in[0]->shape);
}

const struct op_def op_linear = {.name = "linear",
                                 .build = linear_build,
                                 .grad = linear_grad,
                                 .flops = linear_flops,
                                 .low = {LOW_ALWAYS, 3, 1}};
const struct op_def op_linear_input_grad = {
    .name = "linear_input_grad", .flops = linear_flops, .low = {LOW_ALWAYS, 3, 1}};
const struct op_def op_linear_weight_grad = {
    .name = "linear_weight_grad", .flops = weight_grad_flops, .low = {LOW_ALWAYS, 3, 0}};
