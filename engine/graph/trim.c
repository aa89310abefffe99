/* trim.c: outputs as long as the longest sample of a chunk (a recurrent layer's total_length
 * false).
 *
 * Shapes are fixed before a step, so such a value keeps all steps of the input; those behind the
 * longest sample are zero and no layer may see them. Layers that go step by step pass that on,
 * SelectLast ends it. Whatever else reads the value needs it whole, as in PyTorch, where shapes
 * would not fit: the model notes who, and each batch is checked (engine/parallel/longest.h).
 */
#include "engine/graph/build.h"

static bool always(const struct job_layer *layer, int rank)
{
    (void)layer;
    (void)rank;
    return true;
}

/* By rows of the last dimension. */
static bool normalises_rows(const struct job_layer *layer, int rank)
{
    (void)rank;
    return layer->layernorm.normalized_shape.rank <= 1;
}

static bool leaves_steps(const struct job_layer *layer, int rank)
{
    int64_t dim = layer->dim.dim < 0 ? layer->dim.dim + rank : layer->dim.dim;
    return dim >= 2;
}

/* Whether step t of the output is made of step t of the inputs alone. */
static bool (*const by_step[LAYER_TYPE_COUNT])(const struct job_layer *layer, int rank) = {
    [LAYER_LINEAR] = always,
    [LAYER_RELU] = always,
    [LAYER_GELU] = always,
    [LAYER_SILU] = always,
    [LAYER_SIGMOID] = always,
    [LAYER_TANH] = always,
    [LAYER_DROPOUT] = always,
    [LAYER_ADD] = always,
    [LAYER_MUL] = always,
    [LAYER_POSITIONALEMBEDDING] = always,
    [LAYER_LAYERNORM] = normalises_rows,
    [LAYER_SOFTMAX] = leaves_steps,
    [LAYER_LOGSOFTMAX] = leaves_steps,
    [LAYER_CAT] = leaves_steps,
    /* These know the lengths. */
    [LAYER_LSTM] = always,
    [LAYER_GRU] = always,
    [LAYER_RNN] = always,
    [LAYER_SELECTLAST] = always,
};

static bool recurrent(const struct job_layer *layer)
{
    return layer->type == LAYER_LSTM || layer->type == LAYER_GRU || layer->type == LAYER_RNN;
}

static void need_whole(struct build *build, const struct value *value, int layer)
{
    struct model_input *lengths = &build->found->inputs[value->lengths->input];
    if (lengths->whole < 0)
        lengths->whole = layer;
}

/* Inputs of which only some are trimmed do not fit together. */
static bool all_trimmed(struct value *const *in, int n_in)
{
    for (int i = 0; i < n_in; i++)
        if (!in[i]->trimmed || in[i]->lengths != in[0]->lengths)
            return false;
    return true;
}

void trim_layer(struct build *build, const struct job_layer *layer, struct value *const *in,
                int n_in, struct value *out)
{
    bool trims = recurrent(layer) && !layer->recurrent.total_length;
    bool passes = all_trimmed(in, n_in) && by_step[layer->type] != NULL &&
                  by_step[layer->type](layer, in[0]->shape.rank);
    for (int i = 0; i < n_in; i++)
        if (in[i]->trimmed && !passes)
            need_whole(build, in[i], build->layer);
    if (trims && build->found->inputs[in[0]->lengths->input].trims < 0)
        build->found->inputs[in[0]->lengths->input].trims = build->layer;
    out->trimmed = out->lengths != NULL && (trims || passes);
}

void trim_output(struct build *build)
{
    if (build->graph->output->trimmed)
        need_whole(build, build->graph->output, (int)build->job->model.n_layers);
}
