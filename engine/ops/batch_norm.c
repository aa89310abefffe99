/* batch_norm.c: torch.nn.BatchNorm1d on [N, C], BatchNorm2d on [N, C, H, W].
 *
 * In training it normalises by its chunk's own statistics (or the whole batch's,
 * batch_norm_synchronized.h) and updates the running ones in place; in evaluation by the running
 * ones, or by the batch's where none are tracked. */
#include <inttypes.h>

#include "engine/ops/batch_norm_synchronized.h"
#include "engine/ops/registry.h"

static int check(const struct build *build, const struct job_layer *layer,
                 const struct shape *input, struct err *err)
{
    static const int ranks[] = {[LAYER_BATCHNORM1D] = 2, [LAYER_BATCHNORM2D] = 4};
    const struct layer_batchnorm *args = &layer->batchnorm;
    char text[SHAPE_TEXT];
    build_shape_text(input, text);
    if (input->rank != ranks[layer->type])
        return build_shape_error(build, layer, err, "it takes %s, but its input is %s",
                                 ranks[layer->type] == 2 ? "[N, C]" : "[N, C, H, W]", text);
    if (args->num_features != 0 && args->num_features != input->dim[1])
        return build_shape_error(build, layer, err,
                                 "num_features is %" PRId64 ", but its input %s has %" PRId64,
                                 args->num_features, text, input->dim[1]);
    return 0;
}

/* Variance over one value is not defined; PyTorch refuses it too. */
static int check_values(const struct build *build, const struct job_layer *layer,
                        const struct shape *input, struct err *err)
{
    if (shape_count(input) / input->dim[1] > 1)
        return 0;
    return build_shape_error(build, layer, err,
                             "a chunk of %" PRId64 " sample has one value a channel, and batch "
                             "statistics need more; choose a batch_size or devices that leave no "
                             "such chunk, or drop_last",
                             input->dim[0]);
}

static int build_variables(struct build *build, const struct job_layer *layer, int64_t channels,
                           struct batch_norm_variables *ret, struct err *err)
{
    const struct layer_batchnorm *args = &layer->batchnorm;
    const struct init_rule zero = {.kind = INIT_ZERO}, one = {.kind = INIT_ONE};
    const struct shape shape = SHAPE(channels), scalar = {0};
    if (args->affine) {
        ret->weight = build_parameter(build, layer, "weight", shape, one, err);
        if (ret->weight == NULL)
            return err->code;
        ret->bias = build_parameter(build, layer, "bias", shape, zero, err);
        if (ret->bias == NULL)
            return err->code;
    }
    if (!args->track_running_stats)
        return 0;
    ret->mean = build_buffer(build, layer, "running_mean", shape, DTYPE_F32, zero, err);
    if (ret->mean == NULL)
        return err->code;
    ret->var = build_buffer(build, layer, "running_var", shape, DTYPE_F32, one, err);
    if (ret->var == NULL)
        return err->code;
    ret->tracked = build_buffer(build, layer, "num_batches_tracked", scalar, DTYPE_I64, zero, err);
    return ret->tracked == NULL ? err->code : 0;
}

static int build_forward(struct build *build, const struct layer_batchnorm *args,
                         struct value *input, const struct batch_norm_variables *variables,
                         bool batch_stats, struct value **ret_out, struct err *err)
{
    const struct batch_norm_attr attr = {.eps = args->eps, .momentum = args->momentum};
    if (batch_norm_synchronizes(build))
        return batch_norm_synchronized_build(build, &attr, input, variables, ret_out, err);
    const char *op = batch_stats ? "batch_norm" : "batch_norm_eval";
    struct shape statistics = SHAPE(input->shape.dim[1]);
    struct node *node = build_node(build, op, PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, input);
    build_in(node, variables->weight);
    build_in(node, variables->bias);
    /* Statistics of an evaluation's batch leave no trace. */
    bool updates = batch_stats && build_training(build);
    build_in(node, batch_stats && !updates ? NULL : variables->mean);
    build_in(node, batch_stats && !updates ? NULL : variables->var);
    if (batch_stats)
        build_in(node, updates ? variables->tracked : NULL);
    *ret_out = build_out(build, node, input->shape, DTYPE_F32, err);
    if (*ret_out == NULL)
        return err->code;
    if (batch_stats && (build_out(build, node, statistics, DTYPE_F32, err) == NULL ||
                        build_out(build, node, statistics, DTYPE_F32, err) == NULL))
        return err->code;
    return 0;
}

static int batch_norm_build(struct build *build, const struct job_layer *layer,
                            struct value *const *in, int n_in, struct value **ret_out,
                            struct err *err)
{
    (void)n_in;
    struct batch_norm_variables variables = {0};
    bool batch_stats = build_training(build) || !layer->batchnorm.track_running_stats;
    int rc = check(build, layer, &in[0]->shape, err);
    if (rc == 0 && batch_stats && !batch_norm_synchronizes(build))
        rc = check_values(build, layer, &in[0]->shape, err);
    if (rc == 0)
        rc = build_variables(build, layer, in[0]->shape.dim[1], &variables, err);
    if (rc == 0)
        rc = build_forward(build, &layer->batchnorm, in[0], &variables, batch_stats, ret_out, err);
    return rc;
}

static int batch_norm_grad(struct build *build, const struct node *node,
                           struct value *const *out_grad, struct value **in_grad, struct err *err)
{
    return grad_norm(build, node, "batch_norm_grad", out_grad[0], in_grad, err);
}

const struct op_def op_batch_norm = {.name = "batch_norm",
                                     .build = batch_norm_build,
                                     .grad = batch_norm_grad,
                                     .mutates = 1u << 3 | 1u << 4 | 1u << 5,
                                     .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_batch_norm_eval = {
    .name = "batch_norm_eval", .grad = batch_norm_synchronized_grad, .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_batch_norm_grad = {.name = "batch_norm_grad", .low = {LOW_AS_FIRST, 3, 1}};
