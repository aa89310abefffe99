/* shapes.c: see shapes.h. */
#include "engine/parallel/shapes.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/graph/op.h"
#include "engine/ops/registry.h"
#include "engine/parallel/chunk.h"

_Static_assert(LIMIT_DEVICES <= 64, "shape_graph.replicas is a mask");

static bool sharded(const struct strategy_config *config)
{
    return config->model->job->parallel.shards > 0;
}

int shapes_chunks(const struct strategy_config *config)
{
    return sharded(config) ? (int)config->model->job->parallel.shards : config->n_devices;
}

int shapes_optimizer_parts(const struct strategy_config *config)
{
    return config->model->job->parallel.shard_optimizer ? config->n_devices : 1;
}

struct shape_key shapes_key(const struct strategy_config *config, int number, int64_t n,
                            bool training, enum step_part part)
{
    bool shard = training && sharded(config);
    struct shape_key key = {n, training, shard ? STEP_FIRST : part, shard && number > 0, 0};
    if (training && step_part_ends(key.part) && shapes_optimizer_parts(config) > 1)
        key.owner = number;
    return key;
}

/* As one that rests: what every replica does. */
struct shape_key shapes_begin(void)
{
    return (struct shape_key){.training = true, .part = STEP_MIDDLE};
}

struct shape_key shapes_record(void)
{
    return (struct shape_key){.training = true, .part = STEP_RECORD};
}

/* All gradients are there and added: no all-reduce. */
struct shape_key shapes_update(const struct strategy_config *config, int device)
{
    struct shape_key key = {.training = true, .part = STEP_END};
    if (shapes_optimizer_parts(config) > 1)
        key.owner = device;
    return key;
}

static struct shape_graph *find(const struct shapes *shapes, const struct shape_key *key)
{
    for (size_t i = 0; i < shapes->n; i++) {
        const struct graph_options *options = &shapes->list[i].graph->options;
        if (options->batch == key->chunk && options->training == key->training &&
            options->part == key->part && options->keeps_buffers == key->keeps_buffers &&
            options->optimizer_part == key->owner)
            return &shapes->list[i];
    }
    return NULL;
}

size_t shapes_find(const struct shapes *shapes, const struct shape_key *key)
{
    const struct shape_graph *found = find(shapes, key);
    assert(found != NULL);
    return (size_t)(found - shapes->list);
}

static int add_graph(const struct strategy_config *config, struct shapes *shapes, int replica,
                     const struct shape_key *key, struct err *err)
{
    struct shape_graph *known = find(shapes, key);
    if (known == NULL) {
        struct graph_options options = {
            .batch = key->chunk,
            .training = key->training,
            .part = key->part,
            .keeps_buffers = key->keeps_buffers,
            .pieces = sharded(config),
            .n_replicas = sharded(config) ? 1 : config->n_devices,
            .optimizer_parts = shapes_optimizer_parts(config),
            .optimizer_part = key->owner,
            .bucket_bytes = SHAPES_BUCKET_BYTES,
        };
        known = &shapes->list[shapes->n];
        int rc = graph_build(config->model, &op_registry, &options, &known->graph, err);
        if (rc != 0)
            return rc;
        shapes->n++;
    }
    known->replicas |= UINT64_C(1) << replica;
    if (key->chunk > shapes->largest[replica])
        shapes->largest[replica] = key->chunk;
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

/* What stands around a device's shards. */
static int add_around(const struct strategy_config *config, struct shapes *shapes, int device,
                      enum step_part part, struct err *err)
{
    const struct shape_key begin = shapes_begin(), record = shapes_record(),
                           update = shapes_update(config, device);
    int rc = device > 0 ? add_graph(config, shapes, device, &begin, err) : 0;
    if (rc != 0 || !step_part_ends(part))
        return rc;
    if (config->model->n_recorded > 0)
        rc = add_graph(config, shapes, device, &record, err);
    return rc != 0 ? rc : add_graph(config, shapes, device, &update, err);
}

/* The chunks of one device. */
static int add_chunks(const struct strategy_config *config, struct shapes *shapes, int device,
                      const int64_t *sizes, bool training, enum step_part part, struct err *err)
{
    int chunks = shapes_chunks(config), rc = 0;
    int end = chunk_first(chunks, config->n_devices, device + 1);
    for (int c = chunk_first(chunks, config->n_devices, device); rc == 0 && c < end; c++) {
        const struct shape_key key = shapes_key(config, c, sizes[c], training, part);
        if (sizes[c] > 0 || (training && !sharded(config)))
            rc = add_graph(config, shapes, device, &key, err);
    }
    return rc == 0 && training && sharded(config) ? add_around(config, shapes, device, part, err)
                                                  : rc;
}

static int add_batch(const struct strategy_config *config, struct shapes *shapes, int64_t batch,
                     bool training, enum step_part part, struct err *err)
{
    int64_t sizes[LIMIT_DEVICES];
    int rc = training && batch == 1 ? check_single(config, part, err) : 0;
    chunk_sizes(batch, shapes_chunks(config), sizes);
    for (int r = 0; rc == 0 && r < config->n_devices; r++)
        rc = add_chunks(config, shapes, r, sizes, training, part, err);
    return rc;
}

int shapes_build(const struct strategy_config *config, struct shapes *ret_shapes, struct err *err)
{
    /* A batch has at most three kinds of chunk: whole, the shorter last one, none; of shards, the
     * first also differs, and three graphs stand around them. */
    size_t most = 7 * (config->n_train_batches + config->n_eval_batches);
    most *= (size_t)shapes_optimizer_parts(config);
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
