/* pipeline.c: see pipeline.h. */
#include "engine/parallel/pipeline.h"

#include <assert.h>

#include "engine/ops/registry.h"
#include "engine/parallel/shapes.h"

_Static_assert(LIMIT_DEVICES <= 64, "pipeline_graph.devices is a mask");

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory for the stages");
}

static struct pipeline_graph *find(const struct pipeline *pipeline, const struct pipeline_key *key)
{
    for (size_t i = 0; i < pipeline->n_graphs; i++) {
        const struct graph_options *options = &pipeline->graphs[i].graph->options;
        if (options->stage == key->stage && options->batch == key->rows &&
            options->training == key->training && options->part == key->part &&
            options->keeps_buffers == key->keeps_buffers)
            return &pipeline->graphs[i];
    }
    return NULL;
}

size_t pipeline_graph(const struct pipeline *pipeline, const struct pipeline_key *key)
{
    const struct pipeline_graph *found = find(pipeline, key);
    assert(found != NULL);
    return (size_t)(found - pipeline->graphs);
}

static struct timetable *find_table(const struct pipeline *pipeline, int microbatches,
                                    bool training)
{
    for (size_t i = 0; i < pipeline->n_tables; i++) {
        const struct timetable_config *config = &pipeline->tables[i]->config;
        if (config->microbatches == microbatches && config->training == training)
            return pipeline->tables[i];
    }
    return NULL;
}

const struct timetable *pipeline_timetable(const struct pipeline *pipeline, int microbatches,
                                           bool training)
{
    const struct timetable *found = find_table(pipeline, microbatches, training);
    assert(found != NULL);
    return found;
}

struct microbatch_rows pipeline_rows(const struct pipeline *pipeline, int64_t n, int index)
{
    return microbatch_chunk((struct microbatch_rows){0, n}, pipeline->placement.n_pipelines, index);
}

int pipeline_microbatches(const struct pipeline *pipeline, int64_t n, int index)
{
    return (int)microbatch_count(&pipeline->rule, pipeline_rows(pipeline, n, index).n);
}

struct microbatch_rows pipeline_worker_rows(const struct pipeline *pipeline, int64_t n,
                                            struct worker worker, int microbatch)
{
    struct microbatch_rows rows =
        microbatch_cut(&pipeline->rule, pipeline_rows(pipeline, n, worker.pipeline), microbatch);
    return microbatch_chunk(rows, placement_workers(&pipeline->placement, worker.stage),
                            worker.part);
}

struct pipeline_key pipeline_key(const struct pipeline *pipeline, int64_t n, struct worker worker,
                                 int microbatch, bool training, enum step_part part)
{
    struct pipeline_key key = {
        .stage = worker.stage,
        .rows = pipeline_worker_rows(pipeline, n, worker, microbatch).n,
        .training = training,
    };
    if (!training)
        return key;
    key.part = microbatch == 0 && !step_part_adds(part) ? STEP_FIRST : STEP_MIDDLE;
    key.keeps_buffers = microbatch >= pipeline_microbatches(pipeline, n, 0);
    return key;
}

static int add_graph(struct pipeline *pipeline, int device, const struct pipeline_key *key,
                     struct err *err)
{
    struct pipeline_graph *known = find(pipeline, key);
    if (known == NULL) {
        const struct placement *placement = &pipeline->placement;
        bool ends = key->training && step_part_ends(key->part);
        struct graph_options options = {
            .batch = key->rows,
            .training = key->training,
            .part = key->part,
            .keeps_buffers = key->keeps_buffers,
            .pieces = true,
            .n_replicas =
                ends ? placement->n_pipelines * placement_workers(placement, key->stage) : 1,
            .bucket_bytes = SHAPES_BUCKET_BYTES,
            .split = &placement->split,
            .stage = key->stage,
        };
        struct pipeline_graph *graphs =
            arena_grow(pipeline->arena, pipeline->graphs, pipeline->n_graphs,
                       &pipeline->graphs_capacity, sizeof *graphs);
        if (graphs == NULL)
            return nomem(err);
        pipeline->graphs = graphs;
        known = &graphs[pipeline->n_graphs];
        *known = (struct pipeline_graph){.graph = NULL};
        int rc = graph_build(pipeline->config->model, &op_registry, &options, &known->graph, err);
        if (rc != 0)
            return rc;
        pipeline->n_graphs++;
    }
    known->devices |= UINT64_C(1) << device;
    if (key->rows > pipeline->most_rows[device])
        pipeline->most_rows[device] = key->rows;
    return 0;
}

static int add_table(struct pipeline *pipeline, int microbatches, bool training, struct err *err)
{
    if (microbatches == 0 || find_table(pipeline, microbatches, training) != NULL)
        return 0;
    const struct timetable_config config = {
        .schedule = pipeline->config->model->job->parallel.schedule,
        .stages = pipeline->placement.split.n_stages,
        .microbatches = microbatches,
        .training = training,
    };
    struct timetable **tables = arena_grow(pipeline->arena, pipeline->tables, pipeline->n_tables,
                                           &pipeline->tables_capacity, sizeof(struct timetable *));
    if (tables == NULL)
        return nomem(err);
    pipeline->tables = tables;
    int rc = timetable_build(&config, &tables[pipeline->n_tables], err);
    if (rc == 0)
        pipeline->n_tables++;
    return rc;
}

/* Its own, and without rows those that only the first pipeline has. */
static int add_microbatches(struct pipeline *pipeline, int device, int64_t n, bool training,
                            enum step_part part, struct err *err)
{
    struct worker worker = placement_worker(&pipeline->placement, device);
    int m = pipeline_microbatches(pipeline, n, worker.pipeline);
    int first = pipeline_microbatches(pipeline, n, 0);
    int rc = add_table(pipeline, m, training, err);
    for (int i = 0; rc == 0 && (i < m || i < first); i++) {
        struct pipeline_key key = pipeline_key(pipeline, n, worker, i, training, part);
        if (key.rows > 0 || training)
            rc = add_graph(pipeline, device, &key, err);
    }
    return rc;
}

static int add_end(struct pipeline *pipeline, int device, enum step_part part, struct err *err)
{
    struct pipeline_key key = {placement_worker(&pipeline->placement, device).stage, 0, true, part,
                               false};
    return add_graph(pipeline, device, &key, err);
}

static int add_batch(struct pipeline *pipeline, int64_t n, bool training, enum step_part part,
                     struct err *err)
{
    int rc = 0;
    bool ends = training && step_part_ends(part);
    for (int d = 0; rc == 0 && d < pipeline->config->n_devices; d++) {
        rc = add_microbatches(pipeline, d, n, training, part, err);
        if (rc == 0 && ends && pipeline->config->model->n_recorded > 0)
            rc = add_end(pipeline, d, STEP_RECORD, err);
        if (rc == 0 && ends)
            rc = add_end(pipeline, d, STEP_END, err);
    }
    return rc;
}

static int add_batches(struct pipeline *pipeline, struct err *err)
{
    const struct strategy_config *config = pipeline->config;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < config->n_train_batches; i++)
        rc = add_batch(pipeline, config->train_batches[i].n, true, config->train_batches[i].part,
                       err);
    for (size_t i = 0; rc == 0 && i < config->n_eval_batches; i++)
        rc = add_batch(pipeline, config->eval_batches[i], false, STEP_WHOLE, err);
    return rc;
}

/* A value's reader may lag by as many micro-batches as there are stages between; one more is in
 * the making. */
static void count_room(struct pipeline *pipeline)
{
    int most = 1;
    for (int s = 0; s < pipeline->placement.split.n_stages; s++) {
        pipeline->slots[s] = 1;
        pipeline->outbox_depth[s] = 1;
    }
    for (size_t i = 0; i < pipeline->n_tables; i++) {
        const struct timetable *table = pipeline->tables[i];
        most = table->config.microbatches > most ? table->config.microbatches : most;
        for (int s = 0; s < table->config.stages; s++)
            if (table->stages[s].slots > pipeline->slots[s])
                pipeline->slots[s] = table->stages[s].slots;
    }
    for (size_t i = 0; i < pipeline->crossings.n; i++) {
        const struct crossing *crossing = &pipeline->crossings.list[i];
        int depth = crossing->to - crossing->from + 1;
        depth = depth < most ? depth : most;
        if (depth > pipeline->outbox_depth[crossing->from])
            pipeline->outbox_depth[crossing->from] = depth;
        if (depth > pipeline->outbox_depth[crossing->to])
            pipeline->outbox_depth[crossing->to] = depth;
    }
}

static int build_maps(struct pipeline *pipeline, struct err *err)
{
    const struct split *split = &pipeline->placement.split;
    pipeline->maps = arena_array(pipeline->arena, (size_t)split->n_stages, sizeof *pipeline->maps);
    if (pipeline->maps == NULL)
        return nomem(err);
    int rc = 0;
    for (int s = 0; rc == 0 && s < split->n_stages; s++)
        rc = variable_map_build(pipeline->config->model, split, s, pipeline->arena,
                                &pipeline->maps[s], err);
    return rc;
}

int pipeline_build(const struct strategy_config *config, struct pipeline *ret_pipeline,
                   struct err *err)
{
    struct pipeline *pipeline = ret_pipeline;
    const struct job_parallel *parallel = &config->model->job->parallel;
    *pipeline = (struct pipeline){.config = config, .arena = arena_new()};
    if (pipeline->arena == NULL)
        return nomem(err);
    if (parallel->schedule != PIPELINE_NONE)
        pipeline->rule = (struct microbatch_rule){parallel->split_size, parallel->microbatches};
    int rc = placement_build(config->model->job, config->n_devices, &pipeline->placement, err);
    if (rc == 0)
        rc = split_crossings(config->model, &pipeline->placement.split, pipeline->arena,
                             &pipeline->crossings, err);
    if (rc == 0)
        rc = build_maps(pipeline, err);
    if (rc == 0)
        rc = add_batches(pipeline, err);
    if (rc == 0)
        count_room(pipeline);
    return rc;
}

void pipeline_done(struct pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->n_graphs; i++)
        graph_free(pipeline->graphs[i].graph);
    for (size_t i = 0; i < pipeline->n_tables; i++)
        timetable_free(pipeline->tables[i]);
    arena_free(pipeline->arena);
    *pipeline = (struct pipeline){.config = NULL};
}

static double device_flops(const struct pipeline *pipeline, int device,
                           const struct strategy_batch *batch)
{
    struct worker worker = placement_worker(&pipeline->placement, device);
    int m = pipeline_microbatches(pipeline, batch->n, worker.pipeline);
    double flops = 0;
    for (int i = 0; i < m; i++) {
        struct pipeline_key key = pipeline_key(pipeline, batch->n, worker, i, true, batch->part);
        flops += graph_flops(pipeline->graphs[pipeline_graph(pipeline, &key)].graph);
    }
    return flops;
}

double pipeline_flops(const struct pipeline *pipeline)
{
    const struct strategy_batch *largest = strategy_largest(pipeline->config);
    double flops = 0;
    for (int d = 0; largest != NULL && d < pipeline->config->n_devices; d++)
        flops += device_flops(pipeline, d, largest);
    return flops;
}
