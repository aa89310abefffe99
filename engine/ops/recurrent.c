/* recurrent.c: torch.nn.LSTM, GRU, RNN: a node that walks the steps, one a layer and direction.
 *
 * Steps behind a sample's length are zero, states as well: so the direction back begins at the last
 * valid step, as PyTorch's pack, rnn, unpack with total_length would have it. Backward is a walk
 * too, which makes the gradients of weights and inputs on the way: then nothing but x, y and what
 * forward saved has to exist for all steps at once. With checkpoint_steps not even those but x: the
 * walk back goes from checkpoint to checkpoint and makes the steps between once more.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "engine/ops/attr.h"
#include "engine/ops/registry.h"

static const struct {
    int gates;  /* PyTorch's order: i, f, g, o; r, z, n */
    bool saves; /* gates and state, for the gradient */
} cells[CELL_COUNT] = {
    [CELL_LSTM] = {4, true},
    [CELL_GRU] = {3, true},
    [CELL_TANH] = {1, false},
    [CELL_RELU] = {1, false},
};

static enum recurrent_cell cell_of(const struct job_layer *layer)
{
    static const enum recurrent_cell by_type[LAYER_TYPE_COUNT] = {
        [LAYER_LSTM] = CELL_LSTM, [LAYER_GRU] = CELL_GRU, [LAYER_RNN] = CELL_TANH};
    return layer->recurrent.relu ? CELL_RELU : by_type[layer->type];
}

/* One layer in one direction, while it is built. */
struct direction {
    const struct job_layer *layer;
    struct recurrent_attr attr;
    int64_t depth;
    struct value *weight[2], *bias[2]; /* of the inputs, of the states; bias NULL: none */
};

static struct value *parameter(struct build *build, const struct direction *direction,
                               const char *what, int of, struct shape shape, struct err *err)
{
    static const char *const sources[] = {"ih", "hh"};
    const struct job_layer *layer = direction->layer;
    const double bound = 1 / sqrt((double)layer->recurrent.hidden_size);
    const struct init_rule init = {.kind = INIT_UNIFORM, .bound = bound};
    char suffix[64];
    snprintf(suffix, sizeof suffix, "%s_%s_l%" PRId64 "%s", what, sources[of], direction->depth,
             direction->attr.by < 0 ? "_reverse" : "");
    return build_parameter(build, layer, suffix, shape, init, err);
}

static int parameters(struct build *build, struct direction *direction, int64_t features,
                      struct err *err)
{
    const struct layer_recurrent *args = &direction->layer->recurrent;
    int64_t hidden = args->hidden_size, rows = cells[direction->attr.cell].gates * hidden;
    const int64_t columns[] = {features, hidden};
    for (int i = 0; i < 2; i++) {
        direction->weight[i] =
            parameter(build, direction, "weight", i, SHAPE(rows, columns[i]), err);
        if (direction->weight[i] == NULL)
            return err->code;
    }
    for (int i = 0; i < 2 && args->bias; i++) {
        direction->bias[i] = parameter(build, direction, "bias", i, SHAPE(rows), err);
        if (direction->bias[i] == NULL)
            return err->code;
    }
    return 0;
}

static int64_t cuts(int64_t steps, int64_t every)
{
    return (steps + every - 1) / every;
}

/* What the gradient needs beside x and y: the gates and states of all steps, or a state now and
 * then. */
static int save(struct build *build, struct node *node, struct shape y, struct err *err)
{
    const struct recurrent_attr *attr = node->attr;
    int64_t samples = y.dim[0], steps = y.dim[1], size = y.dim[2];
    if (attr->checkpoint_steps > 0) {
        struct shape kept = SHAPE(cuts(steps, attr->checkpoint_steps),
                                  attr->cell == CELL_LSTM ? 2 : 1, samples, size);
        return build_out(build, node, kept, DTYPE_F32, err) == NULL ? err->code : 0;
    }
    if (!cells[attr->cell].saves)
        return 0;
    struct shape state = SHAPE(steps, samples, size), gates = state;
    gates.dim[2] *= cells[attr->cell].gates;
    return build_out(build, node, state, DTYPE_F32, err) == NULL ||
                   build_out(build, node, gates, DTYPE_F32, err) == NULL
               ? err->code
               : 0;
}

static struct value *walk(struct build *build, const struct direction *direction, struct value *x,
                          struct value *lengths, struct err *err)
{
    struct node *node = build_node(build, "recurrent", PHASE_FORWARD, &direction->attr,
                                   sizeof direction->attr, err);
    if (node == NULL)
        return NULL;
    build_in(node, x);
    for (int i = 0; i < 2; i++)
        build_in(node, direction->weight[i]);
    for (int i = 0; i < 2; i++)
        build_in(node, direction->bias[i]);
    build_in(node, lengths);
    struct shape shape = x->shape;
    shape.dim[2] = direction->layer->recurrent.hidden_size;
    struct value *y = build_out(build, node, shape, DTYPE_F32, err);
    if (y == NULL || !build_training(build))
        return y;
    return save(build, node, shape, err) == 0 ? y : NULL;
}

static struct value *join(struct build *build, struct value *const *parts, struct err *err)
{
    struct shape shape = parts[0]->shape;
    const struct cat_attr attr = {.part = {{2, 0}, {2, shape.dim[2]}}};
    struct node *node = build_node(build, "cat", PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return NULL;
    build_in(node, parts[0]);
    build_in(node, parts[1]);
    shape.dim[2] *= 2;
    return build_out(build, node, shape, DTYPE_F32, err);
}

/* Between two layers; each has a mask of its own. */
static struct value *drop(struct build *build, double p, int64_t depth, struct value *x,
                          struct err *err)
{
    if (!build_training(build) || p == 0 || depth == 0)
        return x;
    const struct dropout_attr attr = {.p = p,
                                      .layer = build_layer(build) + (int)depth * LIMIT_LAYERS};
    struct node *node = build_node(build, "dropout", PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return NULL;
    build_in(node, x);
    return build_out(build, node, x->shape, DTYPE_F32, err);
}

/* Layer `depth` in its one or two directions. */
static struct value *one_layer(struct build *build, const struct job_layer *layer, int64_t depth,
                               struct value *x, struct err *err)
{
    struct value *lengths = x->lengths;
    struct value *out[2] = {NULL};
    x = drop(build, layer->recurrent.dropout, depth, x, err);
    for (int i = 0; x != NULL && i < 1 + layer->recurrent.bidirectional; i++) {
        struct direction direction = {
            .layer = layer,
            .attr = {.cell = cell_of(layer),
                     .by = i == 0 ? 1 : -1,
                     .checkpoint_steps = layer->recurrent.checkpoint_steps},
            .depth = depth,
        };
        if (parameters(build, &direction, x->shape.dim[2], err) != 0)
            return NULL;
        out[i] = walk(build, &direction, x, lengths, err);
        if (out[i] == NULL)
            return NULL;
    }
    return out[1] == NULL ? out[0] : join(build, out, err);
}

static int recurrent_build(struct build *build, const struct job_layer *layer,
                           struct value *const *in, int n_in, struct value **ret_out,
                           struct err *err)
{
    (void)n_in;
    const struct layer_recurrent *args = &layer->recurrent;
    struct value *x = in[0];
    char text[SHAPE_TEXT];
    if (x->shape.rank != 3)
        return build_shape_error(build, layer, err, "it takes [N, T, F], but its input is %s",
                                 build_shape_text(&x->shape, text));
    if (!args->total_length && x->lengths == NULL)
        return build_shape_error(build, layer, err,
                                 "total_length is false, but its input has no lengths");
    if (args->input_size != 0 && args->input_size != x->shape.dim[2])
        return build_shape_error(
            build, layer, err, "input_size is %" PRId64 ", but its input %s has %" PRId64,
            args->input_size, build_shape_text(&x->shape, text), x->shape.dim[2]);
    for (int64_t depth = 0; x != NULL && depth < args->num_layers; depth++)
        x = one_layer(build, layer, depth, x, err);
    *ret_out = x;
    return x == NULL ? err->code : 0;
}

static int recurrent_grad(struct build *build, const struct node *node,
                          struct value *const *out_grad, struct value **in_grad, struct err *err)
{
    const struct recurrent_attr *attr = node->attr;
    struct node *grad = build_grad_node(build, "recurrent_grad", PHASE_INPUT_GRAD, node, err);
    if (grad == NULL)
        return err->code;
    build_in(grad, out_grad[0]);
    for (int i = 0; i < node->n_in; i++)
        build_in(grad, node->in[i]);
    build_in(grad, attr->checkpoint_steps > 0 ? NULL : node->out[0]);
    for (int i = 1; i < node->n_out; i++)
        build_in(grad, node->out[i]);
    struct value *x = node->in[0];
    struct value *gx = NULL;
    if (x->needs_grad) {
        gx = build_out(build, grad, x->shape, DTYPE_F32, err);
        if (gx == NULL)
            return err->code;
    } else {
        build_out_value(grad, NULL);
    }
    in_grad[0] = gx;
    for (int i = 1; i <= 4; i++) {
        bool wanted = node->in[i] != NULL && node->in[i]->needs_grad;
        struct value *gradient = wanted ? build_gradient(build, node->in[i], err) : NULL;
        if (wanted && gradient == NULL)
            return err->code;
        build_out_value(grad, gradient);
    }
    return 0;
}

/* Of all steps' products with both weights. */
static double products_flops(struct value *const *weights, const struct shape *x)
{
    int64_t elements = shape_count(&weights[0]->shape) + shape_count(&weights[1]->shape);
    return 2.0 * (double)elements * (double)(x->dim[0] * x->dim[1]);
}

static double recurrent_flops(const struct node *node)
{
    return products_flops(&node->in[1], &node->in[0]->shape);
}

/* Two gradients of each product; with checkpoints the product once more. */
static double recurrent_grad_flops(const struct node *node)
{
    const struct recurrent_attr *attr = node->attr;
    double products = products_flops(&node->in[2], &node->in[1]->shape);
    return products * (attr->checkpoint_steps > 0 ? 3 : 2);
}

const struct op_def op_recurrent = {.name = "recurrent",
                                    .build = recurrent_build,
                                    .grad = recurrent_grad,
                                    .flops = recurrent_flops,
                                    .low = {LOW_ALWAYS, 0, 0}};
const struct op_def op_recurrent_grad = {
    .name = "recurrent_grad", .flops = recurrent_grad_flops, .low = {LOW_ALWAYS, 0, 0}};
