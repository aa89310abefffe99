/* layer_norm.c: torch.nn.LayerNorm over the last dimensions. What the gradient needs of a row, mean
 * and spread, is kept in training only. */
#include <string.h>

#include "engine/ops/attr.h"
#include "engine/ops/grad.h"
#include "engine/ops/registry.h"

/* Parts the input in rows, shape.dim[0 .. lead), of ret_normalized elements. */
static int find_rows(const struct build *build, const struct job_layer *layer,
                     const struct shape *input, struct shape *ret_normalized,
                     struct shape *ret_lead, struct err *err)
{
    const struct job_shape *given = &layer->layernorm.normalized_shape;
    int rank = given->rank > 0 ? (int)given->rank : 1, lead = input->rank - rank;
    char text[SHAPE_TEXT], want[SHAPE_TEXT];
    struct shape tail = {.rank = rank}, wanted = {.rank = (int)given->rank};
    memcpy(wanted.dim, given->dim, sizeof given->dim[0] * (size_t)given->rank);
    if (lead > 0)
        memcpy(tail.dim, input->dim + lead, sizeof input->dim[0] * (size_t)rank);
    if (lead < 1 || (given->rank > 0 && !shape_equal(&tail, &wanted)))
        return build_shape_error(build, layer, err,
                                 "normalized_shape is %s, but its input %s does not end in it",
                                 shape_format(&wanted, want), build_shape_text(input, text));
    *ret_normalized = tail;
    *ret_lead = *input;
    ret_lead->rank = lead;
    return 0;
}

static int layer_norm_build(struct build *build, const struct job_layer *layer,
                            struct value *const *in, int n_in, struct value **ret_out,
                            struct err *err)
{
    (void)n_in;
    const struct layer_layernorm *args = &layer->layernorm;
    const struct init_rule zero = {.kind = INIT_ZERO}, one = {.kind = INIT_ONE};
    struct value *weight = NULL, *bias = NULL;
    struct shape normalized, lead;
    int rc = find_rows(build, layer, &in[0]->shape, &normalized, &lead, err);
    if (rc != 0)
        return rc;
    if (args->elementwise_affine) {
        weight = build_parameter(build, layer, "weight", normalized, one, err);
        if (weight == NULL)
            return err->code;
    }
    if (args->elementwise_affine && args->bias) {
        bias = build_parameter(build, layer, "bias", normalized, zero, err);
        if (bias == NULL)
            return err->code;
    }
    const struct layer_norm_attr attr = {.eps = args->eps, .dims = normalized.rank};
    struct node *node = build_node(build, "layer_norm", PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    build_in(node, weight);
    build_in(node, bias);
    *ret_out = build_out(build, node, in[0]->shape, DTYPE_F32, err);
    if (*ret_out == NULL)
        return err->code;
    if (build_training(build) && (build_out(build, node, lead, DTYPE_F32, err) == NULL ||
                                  build_out(build, node, lead, DTYPE_F32, err) == NULL))
        return err->code;
    return 0;
}

static int layer_norm_grad(struct build *build, const struct node *node,
                           struct value *const *out_grad, struct value **in_grad, struct err *err)
{
    return grad_norm(build, node, "layer_norm_grad", out_grad[0], in_grad, err);
}

const struct op_def op_layer_norm = {.name = "layer_norm",
                                     .build = layer_norm_build,
                                     .grad = layer_norm_grad,
                                     .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_layer_norm_grad = {.name = "layer_norm_grad", .low = {LOW_AS_FIRST, 3, 1}};
