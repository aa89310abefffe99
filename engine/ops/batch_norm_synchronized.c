/* batch_norm_synchronized.c: torch.nn.SyncBatchNorm.
 *
 *     x ─► statistics ─► gather_replicas ─► combine ─► mean, variance, count
 *     x, mean, variance ─► batch_norm_eval ─► y
 *
 * and back: gy ─► sums ─► sum_replicas ─► sums_grad ─► gx. Each chunk weighs what its number of
 * values does. What the replicas told each other is kept, not asked for again, when activations are
 * recomputed.
 */
#include "engine/ops/batch_norm_synchronized.h"

#include "engine/ops/registry.h"

enum { MEAN, VARIANCE, COUNT };                  /* outputs of batch_norm_combine */
enum { X, WEIGHT, BIAS, BATCH_MEAN, BATCH_VAR }; /* inputs of batch_norm_eval */

bool batch_norm_synchronizes(const struct build *build)
{
    return build_job(build)->parallel.batch_norm == STATISTICS_SYNCHRONIZED &&
           build_training(build) && build_replicas(build) > 1;
}

static struct value *gather_statistics(struct build *build, struct value *input, struct err *err)
{
    struct shape own = SHAPE(2 * input->shape.dim[1] + 1);
    struct shape all = SHAPE(build_replicas(build), own.dim[0]);
    struct node *node = build_node(build, "batch_norm_statistics", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return NULL;
    build_in(node, input);
    struct value *statistics = build_out(build, node, own, DTYPE_F32, err);
    if (statistics == NULL)
        return NULL;
    node = build_node(build, "gather_replicas", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return NULL;
    build_in(node, statistics);
    return build_out(build, node, all, DTYPE_F32, err);
}

/* NULL without memory. */
static struct node *combine(struct build *build, const struct batch_norm_attr *attr,
                            struct value *input, const struct batch_norm_variables *variables,
                            struct err *err)
{
    struct shape channels = SHAPE(input->shape.dim[1]);
    struct value *statistics = gather_statistics(build, input, err);
    struct node *node = statistics == NULL ? NULL
                                           : build_node(build, "batch_norm_combine", PHASE_FORWARD,
                                                        attr, sizeof *attr, err);
    if (node == NULL)
        return NULL;
    build_in(node, statistics);
    build_in(node, variables->mean);
    build_in(node, variables->var);
    build_in(node, variables->tracked);
    bool made = build_out(build, node, channels, DTYPE_F32, err) != NULL &&
                build_out(build, node, channels, DTYPE_F32, err) != NULL &&
                build_out(build, node, SHAPE(1), DTYPE_F32, err) != NULL;
    return made ? node : NULL;
}

int batch_norm_synchronized_build(struct build *build, const struct batch_norm_attr *attr,
                                  struct value *input, const struct batch_norm_variables *variables,
                                  struct value **ret_out, struct err *err)
{
    struct node *batch = combine(build, attr, input, variables, err);
    if (batch == NULL)
        return err->code;
    struct node *node =
        build_node(build, "batch_norm_eval", PHASE_FORWARD, attr, sizeof *attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, input);
    build_in(node, variables->weight);
    build_in(node, variables->bias);
    build_in(node, batch->out[MEAN]);
    build_in(node, batch->out[VARIANCE]);
    *ret_out = build_out(build, node, input->shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

/* This chunk's sums; the gradients of weight and bias are sums already. */
static struct value *grad_sums(struct build *build, const struct node *node, struct value *gy,
                               struct err *err)
{
    struct node *sums = build_grad_node(build, "batch_norm_sums", PHASE_INPUT_GRAD, node, err);
    if (sums == NULL)
        return NULL;
    build_in(sums, node->in[X]);
    build_in(sums, gy);
    build_in(sums, node->in[BATCH_MEAN]);
    build_in(sums, node->in[BATCH_VAR]);
    struct shape shape = SHAPE(2, node->in[X]->shape.dim[1]);
    struct value *out = build_out(build, sums, shape, DTYPE_F32, err);
    for (int i = WEIGHT; out != NULL && i <= BIAS; i++) {
        if (node->in[i] == NULL || !node->in[i]->needs_grad)
            continue;
        struct value *gradient = build_gradient(build, node->in[i], err);
        if (gradient == NULL)
            return NULL;
        build_out_value(sums, gradient);
    }
    return out;
}

int batch_norm_synchronized_grad(struct build *build, const struct node *node,
                                 struct value *const *out_grad, struct value **in_grad,
                                 struct err *err)
{
    struct value *x = node->in[X], *gy = out_grad[0];
    struct value *sums = grad_sums(build, node, gy, err);
    if (sums == NULL)
        return err->code;
    if (!x->needs_grad)
        return 0;
    struct node *total = build_grad_node(build, "sum_replicas", PHASE_INPUT_GRAD, node, err);
    if (total == NULL)
        return err->code;
    build_in(total, sums);
    if (build_out(build, total, sums->shape, DTYPE_F32, err) == NULL)
        return err->code;
    struct node *grad = build_grad_node(build, "batch_norm_sums_grad", PHASE_INPUT_GRAD, node, err);
    if (grad == NULL)
        return err->code;
    build_in(grad, x);
    build_in(grad, gy);
    build_in(grad, node->in[WEIGHT]);
    build_in(grad, node->in[BATCH_MEAN]);
    build_in(grad, node->in[BATCH_VAR]);
    build_in(grad, total->out[0]);
    build_in(grad, node->in[BATCH_MEAN]->producer->out[COUNT]);
    in_grad[X] = build_out(build, grad, x->shape, DTYPE_F32, err);
    return in_grad[X] == NULL ? err->code : 0;
}

const struct op_def op_batch_norm_statistics = {.name = "batch_norm_statistics"};
const struct op_def op_batch_norm_combine = {
    .name = "batch_norm_combine", .mutates = 1u << 1 | 1u << 2 | 1u << 3, .kept = true};
const struct op_def op_batch_norm_sums = {.name = "batch_norm_sums"};
const struct op_def op_batch_norm_sums_grad = {.name = "batch_norm_sums_grad"};
