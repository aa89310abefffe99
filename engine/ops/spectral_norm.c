/* spectral_norm.c: torch.nn.utils.spectral_norm on dimension 0, with its names and order: the
 * parameter weight_orig W behind the bias, the buffers weight_u and weight_v.
 *
 * The weight is W / σ, σ = uᵀ W v, W as a matrix of its first dimension's rows. A training forward
 * first makes one power iteration, from W alone: so every replica makes the same one, also where it
 * rests, and all have the controller's buffers; of several replicas on one device the first one.
 * Gradients take u and v as constants.
 */
#include "engine/ops/attr.h"
#include "engine/ops/grad.h"
#include "engine/ops/layer_weights.h"
#include "engine/ops/registry.h"

struct vectors {
    struct value *u, *v;
};

static int build_buffers(struct build *build, const struct job_layer *layer,
                         const struct shape *weight, struct vectors *ret, struct err *err)
{
    const struct init_rule unit = {.kind = INIT_UNIT};
    int64_t rows = weight->dim[0], columns = shape_count(weight) / rows;
    ret->u = build_buffer(build, layer, "weight_u", SHAPE(rows), DTYPE_F32, unit, err);
    if (ret->u == NULL)
        return err->code;
    ret->v = build_buffer(build, layer, "weight_v", SHAPE(columns), DTYPE_F32, unit, err);
    return ret->v == NULL ? err->code : 0;
}

/* The buffers one iteration on, and copies of them that no later batch's iteration changes. */
static int iterate(struct build *build, struct value *weight, struct vectors *vectors,
                   struct err *err)
{
    struct node *node = build_node(build, "power_iteration", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, weight);
    build_in(node, vectors->u);
    build_in(node, vectors->v);
    struct vectors made;
    made.u = build_out(build, node, vectors->u->shape, DTYPE_F32, err);
    made.v = made.u == NULL ? NULL : build_out(build, node, vectors->v->shape, DTYPE_F32, err);
    if (made.v == NULL)
        return err->code;
    made.u->needs_grad = made.v->needs_grad = false;
    *vectors = made;
    return 0;
}

static int normalise(struct build *build, struct value *weight, const struct vectors *vectors,
                     struct value **ret_weight, struct err *err)
{
    struct node *node = build_node(build, "spectral_norm", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, weight);
    build_in(node, vectors->u);
    build_in(node, vectors->v);
    *ret_weight = build_out(build, node, weight->shape, DTYPE_F32, err);
    if (*ret_weight == NULL)
        return err->code;
    return build_out(build, node, SHAPE(1), DTYPE_F32, err) == NULL ? err->code : 0;
}

static int build_bias(struct build *build, const struct job_layer *layer,
                      const struct shape *weight, struct init_rule init, struct value **ret_bias,
                      struct err *err)
{
    *ret_bias = build_parameter(build, layer, "bias", SHAPE(weight->dim[0]), init, err);
    return *ret_bias == NULL ? err->code : 0;
}

static int build_normed(struct build *build, const struct job_layer *layer, struct shape shape,
                        struct init_rule init, struct layer_weights *weights, struct err *err)
{
    struct vectors vectors;
    weights->parameter = build_parameter(build, layer, "weight_orig", shape, init, err);
    if (weights->parameter == NULL)
        return err->code;
    int rc = build_buffers(build, layer, &shape, &vectors, err);
    if (rc == 0 && build_training(build) && !build_keeps_buffers(build))
        rc = iterate(build, weights->parameter, &vectors, err);
    return rc != 0 ? rc : normalise(build, weights->parameter, &vectors, &weights->weight, err);
}

int layer_weights_build(struct build *build, const struct job_layer *layer, struct shape shape,
                        struct init_rule init, bool bias, struct layer_weights *ret_weights,
                        struct err *err)
{
    int rc = 0;
    *ret_weights = (struct layer_weights){NULL, NULL, NULL};
    if (layer->spectral_norm) {
        if (bias)
            rc = build_bias(build, layer, &shape, init, &ret_weights->bias, err);
        return rc != 0 ? rc : build_normed(build, layer, shape, init, ret_weights, err);
    }
    ret_weights->parameter = build_parameter(build, layer, "weight", shape, init, err);
    ret_weights->weight = ret_weights->parameter;
    if (ret_weights->weight == NULL)
        return err->code;
    return bias ? build_bias(build, layer, &shape, init, &ret_weights->bias, err) : 0;
}

static int spectral_norm_grad(struct build *build, const struct node *node,
                              struct value *const *out_grad, struct value **in_grad,
                              struct err *err)
{
    (void)in_grad;
    struct node *grad = build_grad_node(build, "spectral_norm_grad", PHASE_WEIGHT_GRAD, node, err);
    if (grad == NULL)
        return err->code;
    build_in(grad, out_grad[0]);
    for (int i = 0; i < 3; i++)
        build_in(grad, node->in[i]);
    build_in(grad, node->out[1]);
    struct value *gradient = build_gradient(build, node->in[0], err);
    if (gradient == NULL)
        return err->code;
    build_out_value(grad, gradient);
    return 0;
}

const struct op_def op_power_iteration = {
    .name = "power_iteration", .mutates = 1u << 1 | 1u << 2, .shared = true, .kept = true};
const struct op_def op_spectral_norm = {.name = "spectral_norm", .grad = spectral_norm_grad};
const struct op_def op_spectral_norm_grad = {.name = "spectral_norm_grad"};
