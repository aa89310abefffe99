/* longest.c: see longest.h. */
#include "engine/parallel/longest.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/parallel/chunk.h"
#include "engine/parallel/shapes.h"

static int64_t longest(const int64_t *lengths, int64_t n)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = lengths[i] > most ? lengths[i] : most;
    return most;
}

/* "/model/layers/3/total_length" */
static const char *place(const struct model_input *lengths, char buf[static 64])
{
    snprintf(buf, 64, "/model/layers/%d/total_length", lengths->trims);
    return buf;
}

/* "replica 1 on cpu:1", "shard 1" */
static const char *name_of(const struct strategy_config *config, int replica, char buf[static 64])
{
    if (config->model->job->parallel.shards > 0)
        snprintf(buf, 64, "shard %d", replica);
    else
        snprintf(buf, 64, "replica %d on %.32s", replica, config->devices[replica].name);
    return buf;
}

static int differ(const struct strategy_config *config, const struct model_input *lengths,
                  int replica, const int64_t *steps, struct err *err)
{
    char path[64], first[64], other[64];
    return err_at(err, ERR_MODEL_SHAPE, place(lengths, path),
                  "layer \"%s\" gives as many steps as the longest sample of a chunk: %s %" PRId64
                  ", %s %" PRId64 ", and these cannot be gathered; with total_length true all give "
                  "%" PRId64,
                  config->model->job->model.layers[lengths->trims].name, name_of(config, 0, first),
                  steps[0], name_of(config, replica, other), steps[replica],
                  config->model->inputs[lengths->of].shape.dim[0]);
}

static int not_whole(const struct model *model, const struct model_input *lengths, int64_t steps,
                     struct err *err)
{
    const struct job_model *layers = &model->job->model;
    char path[64], reader[LIMIT_NAME_BYTES + 16] = "the loss";
    if (lengths->whole < (int)layers->n_layers)
        snprintf(reader, sizeof reader, "layer \"%s\"", layers->layers[lengths->whole].name);
    return err_at(err, ERR_MODEL_SHAPE, place(lengths, path),
                  "layer \"%s\" gives as many steps as the longest sample, here %" PRId64
                  ", but %s takes %" PRId64 ": that is what total_length true gives",
                  layers->layers[lengths->trims].name, steps, reader,
                  model->inputs[lengths->of].shape.dim[0]);
}

static int check(const struct strategy_config *config, const struct model_input *lengths,
                 const int64_t *of_samples, int64_t n, struct err *err)
{
    int64_t sizes[LIMIT_DEVICES], steps[LIMIT_DEVICES];
    int chunks = chunk_sizes(n, shapes_chunks(config), sizes);
    for (int r = 0; r < chunks; r++) {
        steps[r] = longest(of_samples, sizes[r]);
        of_samples += sizes[r];
        if (steps[r] != steps[0])
            return differ(config, lengths, r, steps, err);
    }
    if (lengths->whole >= 0 && steps[0] < config->model->inputs[lengths->of].shape.dim[0])
        return not_whole(config->model, lengths, steps[0], err);
    return 0;
}

int longest_check(const struct strategy_config *config, const struct batch *batch, struct err *err)
{
    const struct model *model = config->model;
    for (int i = 0; i < model->n_inputs; i++) {
        if (model->inputs[i].of < 0 || model->inputs[i].trims < 0)
            continue;
        int rc = check(config, &model->inputs[i], batch->inputs[i], batch->n, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}
