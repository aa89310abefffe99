/* split.c: see split.h. */
#include "engine/graph/split.h"

#include <assert.h>

_Static_assert(LIMIT_DEVICES <= 64, "the readers of a layer are a mask");

struct split split_none(const struct model *model)
{
    return (struct split){.n_stages = 1, .first_layer = {0, (int)model->job->model.n_layers}};
}

int split_stage(const struct split *split, int layer)
{
    int stage = 0;
    while (split->first_layer[stage + 1] <= layer)
        stage++;
    return stage;
}

bool split_owns(const struct model *model, const struct split *split, int stage, int variable)
{
    int layer = model_variable_layer(model, variable);
    return split->first_layer[stage] <= layer && layer < split->first_layer[stage + 1];
}

void split_gradients(const struct model *model, const struct split *split, int stage,
                     int *ret_first, int *ret_end)
{
    int first = model->first_gradient, end = first + model->n_gradients;
    while (first < end && !split_owns(model, split, stage, first))
        first++;
    while (first < end && !split_owns(model, split, stage, end - 1))
        end--;
    *ret_first = first;
    *ret_end = end;
}

/* By layer: bit s: stage s, which is not the layer's own, reads it. Returns how many bits. */
static size_t find_readers(const struct model *model, const struct split *split, uint64_t *readers)
{
    size_t n = 0;
    for (int stage = 0; stage < split->n_stages; stage++)
        for (int i = split->first_layer[stage]; i < split->first_layer[stage + 1]; i++)
            for (int k = 0; model->layers[i].used && k < model->layers[i].n_inputs; k++) {
                int layer = model->layers[i].inputs[k];
                if (layer < 0 || layer >= split->first_layer[stage])
                    continue;
                n += (readers[layer] >> stage & 1) == 0;
                readers[layer] |= UINT64_C(1) << stage;
            }
    return n;
}

static struct crossing crossing_of(const struct model *model, int layer, int from, int to)
{
    const struct model_layer *made = &model->layers[layer];
    return (struct crossing){.layer = layer,
                             .from = from,
                             .to = to,
                             .shape = made->output,
                             .dtype = made->dtype,
                             .bytes = (size_t)shape_count(&made->output) * dtype_size(made->dtype),
                             .gradient = made->needs_grad};
}

int split_crossings(const struct model *model, const struct split *split, struct arena *arena,
                    struct crossings *ret_crossings, struct err *err)
{
    struct crossings crossings = {0};
    int n_layers = split->first_layer[split->n_stages];
    assert(n_layers == (int)model->job->model.n_layers);
    uint64_t *readers = arena_array(arena, (size_t)n_layers, sizeof *readers);
    size_t n = readers == NULL ? 0 : find_readers(model, split, readers);
    crossings.list = arena_array(arena, n, sizeof *crossings.list);
    if (readers == NULL || crossings.list == NULL)
        return err_set(err, ERR_NOMEM, "no memory for what crosses between stages");
    for (int layer = 0; layer < n_layers; layer++)
        for (int to = 0; to < split->n_stages; to++)
            if (readers[layer] >> to & 1)
                crossings.list[crossings.n++] =
                    crossing_of(model, layer, split_stage(split, layer), to);
    *ret_crossings = crossings;
    return 0;
}
