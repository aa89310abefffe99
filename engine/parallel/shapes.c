/* shapes.c: see shapes.h. */
#include "engine/parallel/shapes.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/ops/registry.h"
#include "engine/parallel/chunk.h"

_Static_assert(LIMIT_DEVICES <= 64, "shape_graph.replicas is a mask");

static struct shape_graph *find(const struct shapes *shapes, int64_t chunk, bool training,
                                enum step_part part)
{
    for (size_t i = 0; i < shapes->n; i++) {
        const struct graph_options *options = &shapes->list[i].graph->options;
        if (options->batch == chunk && options->training == training && options->part == part)
            return &shapes->list[i];
    }
    return NULL;
}

size_t shapes_find(const struct shapes *shapes, int64_t chunk, bool training, enum step_part part)
{
    const struct shape_graph *found = find(shapes, chunk, training, part);
    assert(found != NULL);
    return (size_t)(found - shapes->list);
}

static int add_chunk(const struct strategy_config *config, struct shapes *shapes, int replica,
                     int64_t chunk, bool training, enum step_part part, struct err *err)
{
    struct shape_graph *known = find(shapes, chunk, training, part);
    if (known == NULL) {
        struct graph_options options = {
            .batch = chunk,
            .training = training,
            .part = part,
            .n_replicas = config->n_devices,
            .bucket_bytes = SHAPES_BUCKET_BYTES,
        };
        known = &shapes->list[shapes->n];
        int rc = graph_build(config->model, &op_registry, &options, &known->graph, err);
        if (rc != 0)
            return rc;
        shapes->n++;
    }
    known->replicas |= UINT64_C(1) << replica;
    if (chunk > shapes->largest[replica])
        shapes->largest[replica] = chunk;
    return 0;
}

/* A batch of one sample has statistics of its own alone, also where replicas synchronize theirs: a
 * model that refuses it on one device refuses it on several. */
static int check_single(const struct strategy_config *config, enum step_part part, struct err *err)
{
    const struct graph_options options = {
        .batch = 1, .training = true, .part = part, .n_replicas = 1};
    struct graph *graph;
    int rc = graph_build(config->model, &op_registry, &options, &graph, err);
    if (rc == 0)
        graph_free(graph);
    return rc;
}

static int add_batch(const struct strategy_config *config, struct shapes *shapes, int64_t batch,
                     bool training, enum step_part part, struct err *err)
{
    int64_t sizes[LIMIT_DEVICES];
    int rc = training && batch == 1 ? check_single(config, part, err) : 0;
    if (rc != 0)
        return rc;
    chunk_sizes(batch, config->n_devices, sizes);
    for (int r = 0; r < config->n_devices; r++) {
        if (sizes[r] == 0 && !training)
            continue; /* who rests in an evaluation has nothing to do */
        rc = add_chunk(config, shapes, r, sizes[r], training, part, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int shapes_build(const struct strategy_config *config, struct shapes *ret_shapes, struct err *err)
{
    /* A batch has at most three kinds of chunk: whole, the shorter last one, none. */
    size_t most = 3 * (config->n_train_batches + config->n_eval_batches);
    struct shapes shapes = {
        .list = calloc(most + 1, sizeof *shapes.list),
        .largest = calloc((size_t)config->n_devices, sizeof *shapes.largest),
    };
    int rc = 0;
    if (shapes.list == NULL || shapes.largest == NULL)
        rc = err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < config->n_train_batches; i++)
        rc = add_batch(config, &shapes, config->train_batches[i].n, true,
                       config->train_batches[i].part, err);
    for (size_t i = 0; rc == 0 && i < config->n_eval_batches; i++)
        rc = add_batch(config, &shapes, config->eval_batches[i], false, STEP_WHOLE, err);
    if (rc != 0)
        shapes_done(&shapes);
    else
        *ret_shapes = shapes;
    return rc;
}

void shapes_done(struct shapes *shapes)
{
    for (size_t i = 0; i < shapes->n; i++)
        graph_free(shapes->list[i].graph);
    free(shapes->list);
    free(shapes->largest);
    *shapes = (struct shapes){0};
}
