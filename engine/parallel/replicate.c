/* replicate.c: strategy.h by replicas, as DataParallel: a batch is cut by torch.chunk, each
 * device's thread runs its chunk, the graph's all-reduce nodes sum the gradients on the way.
 *
 * Where the job has shards, a device runs several chunks one by one, each a replica of its own;
 * what their order of addition is does not depend on the devices (shard_sum.h).
 *
 * Variables are the same on all devices at the start and stay so, since every replica makes the
 * same update; buffers are the controller's (device 0): those of the others are discarded, and
 * overwritten before an evaluation.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/comm/comm.h"
#include "engine/graph/op.h"
#include "engine/parallel/chunk.h"
#include "engine/parallel/crew.h"
#include "engine/parallel/host_room.h"
#include "engine/parallel/longest.h"
#include "engine/parallel/replica.h"
#include "engine/parallel/rows.h"
#include "engine/parallel/shard_sum.h"
#include "engine/parallel/strategy_def.h"

struct part { /* of a batch: one device's, or a shard */
    struct chunk chunk;
    double loss_sum;
    struct replica_outputs outputs; /* this chunk's part of the strategy's */
};

struct driver { /* of a device */
    struct replica replica;
    struct shard_sum shards;            /* where the job has shards */
    struct chunk begin, record, update; /* the same: what stands around them */
};

struct replicate {
    struct strategy strategy; /* first: the public view */
    struct strategy_config config;
    struct shapes shapes;
    struct arena *arena; /* holds the map */
    struct variable_map map;
    struct comm *comm; /* NULL with one device and no shards */
    struct crew *crew;
    struct host_room room;
    struct observed observed;
    bool buffers_differ; /* between the replicas, since a training step */
    int variable;        /* that read and write are about */
    void *read_to;
    const void *write_from;
    struct part parts[LIMIT_DEVICES]; /* one a device, or the shards */
    int n_parts;
    enum step_part part; /* of the call in progress */
    bool record;         /* its step is recorded */
    struct driver drivers[];
};

static bool has_shards(const struct replicate *replicate)
{
    return replicate->config.model->job->parallel.shards > 0;
}

static void abort_all(void *context)
{
    struct replicate *replicate = context;
    if (replicate->comm != NULL)
        comm_abort(replicate->comm);
}

static int place_error(void *context, int rank, struct err *err)
{
    const struct replicate *replicate = context;
    if (replicate->config.n_devices == 1)
        return err->code;
    return err_context(err, "replica %d on %s", rank, replicate->config.devices[rank].name);
}

static int on_devices(struct replicate *replicate, crew_task task, struct err *err)
{
    return crew_run(replicate->crew, 0, replicate->config.n_devices, task, err);
}

static int plan_task(void *context, int rank, struct err *err)
{
    struct replicate *replicate = context;
    return replica_plan(&replicate->drivers[rank].replica, err);
}

/* Shards are summed by the host. */
static int join(struct replicate *replicate, int rank, struct err *err)
{
    if (has_shards(replicate))
        return 0;
    int rc = comm_join(replicate->comm, rank, replicate->config.backend,
                       replicate->drivers[rank].replica.device, err);
    replicate->parts[rank].chunk.collective = comm_collective(replicate->comm, rank);
    return rc;
}

static int open_task(void *context, int rank, struct err *err)
{
    struct replicate *replicate = context;
    struct driver *driver = &replicate->drivers[rank];
    int rc = replica_open(&driver->replica, err);
    if (rc == 0 && replicate->comm != NULL)
        rc = join(replicate, rank, err);
    return rc != 0 ? rc
                   : shard_sum_open(&driver->shards, &replicate->config, &replicate->map, rank,
                                    driver->replica.device, driver->replica.variables.at, err);
}

static int close_task(void *context, int rank, struct err *err)
{
    struct replicate *replicate = context;
    struct driver *driver = &replicate->drivers[rank];
    (void)err;
    if (replicate->comm != NULL)
        comm_leave(replicate->comm, rank);
    shard_sum_close(&driver->shards, replicate->config.backend, driver->replica.device);
    replica_close(&driver->replica);
    return 0;
}

/* Of a part that rests, only what the others wait for is run. */
static int run_part(struct replicate *replicate, int rank, int p, struct err *err)
{
    struct part *part = &replicate->parts[p];
    part->loss_sum = 0;
    if (part->chunk.batch.n == 0 && (!part->chunk.key.training || has_shards(replicate)))
        return 0;
    return replica_run(&replicate->drivers[rank].replica, &part->chunk, &part->loss_sum,
                       &part->outputs, err);
}

static int run_parts_task(void *context, int rank, struct err *err)
{
    struct replicate *replicate = context;
    int n = replicate->config.n_devices, rc = 0;
    int end = chunk_first(replicate->n_parts, n, rank + 1);
    for (int p = chunk_first(replicate->n_parts, n, rank); rc == 0 && p < end; p++)
        rc = run_part(replicate, rank, p, err);
    return rc;
}

static int run_around(struct replicate *replicate, int rank, const struct chunk *chunk,
                      struct err *err)
{
    const struct replica_outputs outputs = {.observed = &replicate->observed};
    return replica_run(&replicate->drivers[rank].replica, chunk, &(double){0}, &outputs, err);
}

/* Gradients are looked at as the device has made them. */
static int record_shards(struct replicate *replicate, int rank, struct err *err)
{
    struct driver *driver = &replicate->drivers[rank];
    shard_sum_swap(&driver->shards);
    int rc = run_around(replicate, rank, &driver->record, err);
    shard_sum_swap(&driver->shards);
    return rc;
}

static int train_shards_task(void *context, int rank, struct err *err)
{
    struct replicate *replicate = context;
    struct driver *driver = &replicate->drivers[rank];
    int n = replicate->config.n_devices, rc = 0;
    int first = chunk_first(replicate->n_parts, n, rank);
    int end = chunk_first(replicate->n_parts, n, rank + 1);
    if (rank > 0)
        rc = run_around(replicate, rank, &driver->begin, err);
    for (int p = first; rc == 0 && p < end; p++) {
        bool last = p + 1 == end || replicate->parts[p + 1].chunk.batch.n == 0;
        rc = run_part(replicate, rank, p, err);
        if (rc == 0 && replicate->parts[p].chunk.batch.n > 0)
            shard_sum_add(&driver->shards, p, last);
    }
    if (rc == 0 && replicate->record)
        shard_sum_keep(&driver->shards, !step_part_adds(replicate->part));
    if (rc == 0)
        rc = shard_sum_finish(&driver->shards, replicate->comm, rank, replicate->part, err);
    if (rc != 0 || !step_part_ends(replicate->part))
        return rc;
    if (replicate->record && replicate->parts[first].chunk.batch.n > 0)
        rc = record_shards(replicate, rank, err);
    return rc != 0 ? rc : run_around(replicate, rank, &driver->update, err);
}

static int read_task(void *context, int rank, struct err *err)
{
    struct replicate *replicate = context;
    return replica_read(&replicate->drivers[rank].replica, replicate->variable, replicate->read_to,
                        err);
}

static int write_task(void *context, int rank, struct err *err)
{
    struct replicate *replicate = context;
    return replica_write(&replicate->drivers[rank].replica, replicate->variable,
                         replicate->write_from, err);
}

static int build_map(const struct strategy_config *config, struct arena *arena,
                     struct variable_map *ret_map, struct err *err)
{
    int rc = variable_map_build(config->model, NULL, 0, arena, ret_map, err);
    if (rc == 0)
        variable_map_cut(config->model, shapes_optimizer_parts(config), ret_map);
    return rc;
}

/* Shards are summed by the host, which reads the devices' memory. */
static int check_shards(const struct strategy_config *config, struct err *err)
{
    bool shards = config->model->job->parallel.shards > 0;
    if (!shards || config->backend->collectives == NULL)
        return 0;
    return err_at(err, ERR_JOB_UNSUPPORTED, "/parallel/shards",
                  "%s devices do not sum shards yet; leave them out, or run on CPU devices",
                  config->backend->name);
}

/* What the host needs: graphs, the map, gathered predictions. */
static int open_host(struct replicate *replicate, struct err *err)
{
    const struct strategy_config *config = &replicate->config;
    replicate->arena = arena_new();
    if (replicate->arena == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    int rc = check_shards(config, err);
    if (rc == 0)
        rc = host_room_open(config, &replicate->room, err);
    if (rc == 0)
        rc = observed_open(config, &replicate->observed, err);
    if (rc == 0)
        rc = build_map(config, replicate->arena, &replicate->map, err);
    if (rc == 0)
        rc = shapes_build(config, &replicate->shapes, err);
    if (rc == 0 && (config->n_devices > 1 || has_shards(replicate)))
        rc = comm_new(config->n_devices, &replicate->comm, err);
    return rc;
}

/* What a planned replica will allocate, and what stands beside it. */
static struct strategy_memory memory_of(const struct replica *replica)
{
    struct strategy_memory memory = replica->sizes;
    size_t shards = shard_sum_bytes(replica->config, replica->map, replica->rank);
    memory.variable_bytes += shards;
    memory.padding_bytes += memory_padding(replica->config->backend, shards);
    return memory;
}

/* All plans, before any device is given memory. */
static int open_devices(struct replicate *replicate, struct err *err)
{
    struct strategy_memory memory[LIMIT_DEVICES];
    int rc = on_devices(replicate, plan_task, err);
    for (int r = 0; rc == 0 && r < replicate->config.n_devices; r++)
        memory[r] = memory_of(&replicate->drivers[r].replica);
    if (rc == 0)
        rc = strategy_check_memory(&replicate->config, memory, err);
    return rc == 0 ? on_devices(replicate, open_task, err) : rc;
}

static int start_crew(struct replicate *replicate, struct err *err)
{
    const struct crew_config config = {
        .devices = replicate->config.devices,
        .n_devices = replicate->config.n_devices,
        .abort = abort_all,
        .place = place_error,
        .context = replicate,
        .patience = replicate->config.patience,
        .hang = replicate->config.hang,
        .hang_context = replicate->config.hang_context,
    };
    for (int r = 0; r < replicate->config.n_devices; r++) {
        struct driver *driver = &replicate->drivers[r];
        driver->replica = (struct replica){
            .rank = r,
            .config = &replicate->config,
            .shapes = &replicate->shapes,
            .map = &replicate->map,
        };
    }
    return crew_start(&config, &replicate->crew, err);
}

static void replicate_close(struct strategy *strategy)
{
    struct replicate *replicate = (struct replicate *)strategy;
    if (replicate->crew != NULL)
        on_devices(replicate, close_task, &(struct err)ERR_INIT);
    crew_stop(replicate->crew);
    comm_free(replicate->comm);
    shapes_done(&replicate->shapes);
    arena_free(replicate->arena);
    host_room_done(&replicate->room);
    observed_done(&replicate->observed);
    free(replicate);
}

static int replicate_open(const struct strategy_config *config, struct strategy **ret_strategy,
                          struct err *err)
{
    assert(config->n_devices >= 1 && config->n_devices <= LIMIT_DEVICES);
    struct replicate *replicate =
        calloc(1, sizeof *replicate + (size_t)config->n_devices * sizeof replicate->drivers[0]);
    if (replicate == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    replicate->strategy.def = &strategy_replicate;
    replicate->config = *config;
    replicate->n_parts = shapes_chunks(config);
    int rc = open_host(replicate, err);
    if (rc == 0)
        rc = start_crew(replicate, err);
    if (rc == 0)
        rc = open_devices(replicate, err);
    if (rc != 0)
        replicate_close(&replicate->strategy);
    else
        *ret_strategy = &replicate->strategy;
    return rc;
}

/* Cuts the batch: each part gets its rows, and the position of its first sample. */
static void scatter(struct replicate *replicate, const struct batch *batch, const struct step *step,
                    bool training, enum step_part step_part)
{
    const struct strategy_config *config = &replicate->config;
    const struct model *model = config->model;
    int64_t sizes[LIMIT_DEVICES], first = 0;
    chunk_sizes(batch->n, replicate->n_parts, sizes);
    replicate->part = step_part;
    replicate->record = step->record && model->n_recorded > 0;
    for (int p = 0; p < replicate->n_parts; p++) {
        struct part *part = &replicate->parts[p];
        struct chunk *chunk = &part->chunk;
        chunk->key = shapes_key(config, p, sizes[p], training, step_part);
        chunk->step = *step;
        chunk->step.first_sample += first;
        chunk->step.record &= step_part_ends(step_part);
        chunk->batch = rows_of(model, batch, first, sizes[p]);
        part->outputs = (struct replica_outputs){host_room_samples(&replicate->room, model, first),
                                                 &replicate->observed};
        first += sizes[p];
    }
    for (int r = 0; r < config->n_devices; r++) {
        struct driver *driver = &replicate->drivers[r];
        driver->begin = (struct chunk){.key = shapes_begin(), .step = *step};
        driver->record = (struct chunk){.key = shapes_record(), .step = *step};
        driver->update = (struct chunk){
            .key = shapes_update(config, r),
            .step = *step,
            .collective = replicate->comm != NULL ? comm_collective(replicate->comm, r) : NULL,
        };
    }
}

static void gather_times(const struct replicate *replicate, struct strategy_result *result)
{
    for (int d = 0; d < replicate->config.n_devices; d++) {
        struct comm_times times = {0};
        if (replicate->comm != NULL)
            times = comm_times(replicate->comm, d);
        result->times[d] = (struct strategy_times){.waited = times.waited, .reduced = times.summed};
    }
}

static void gather(const struct replicate *replicate, const struct step *step,
                   struct strategy_result *result)
{
    double sum = 0;
    *result = (struct strategy_result){.n_replicas = replicate->n_parts};
    for (int p = 0; p < replicate->n_parts; p++) {
        const struct part *part = &replicate->parts[p];
        const struct batch *chunk = &part->chunk.batch;
        result->replicas[p] = (struct replica_result){
            .samples = chunk->n,
            .loss_sum = part->loss_sum,
            .loss_divisor = graph_loss_divisor(replicate->config.model, chunk->targets, chunk->n),
        };
        sum += part->loss_sum;
    }
    result->loss = sum / step->loss_divisor;
    gather_times(replicate, result);
}

static int replicate_train(struct strategy *strategy, const struct batch *batch,
                           enum step_part part, const struct step *step,
                           struct strategy_result *ret_result, struct err *err)
{
    struct replicate *replicate = (struct replicate *)strategy;
    scatter(replicate, batch, step, true, part);
    observed_clear(&replicate->observed);
    int rc = longest_check(&replicate->config, batch, err);
    if (rc == 0)
        rc = on_devices(replicate, has_shards(replicate) ? train_shards_task : run_parts_task, err);
    if (rc != 0)
        return rc;
    replicate->buffers_differ = replicate->config.n_devices > 1;
    gather(replicate, step, ret_result);
    observed_show(&replicate->observed, ret_result);
    return 0;
}

static int replicate_read(struct strategy *strategy, int variable, void *to, struct err *err)
{
    struct replicate *replicate = (struct replicate *)strategy;
    replicate->variable = variable;
    replicate->read_to = to;
    /* Of the optimizer's state, each device may have a part. */
    bool cut = replicate->config.model->variables[variable].kind == VARIABLE_OPTIMIZER;
    int holders = cut ? shapes_optimizer_parts(&replicate->config) : 1;
    return crew_run(replicate->crew, 0, holders, read_task, err);
}

static int replicate_write(struct strategy *strategy, int variable, const void *from,
                           struct err *err)
{
    struct replicate *replicate = (struct replicate *)strategy;
    replicate->variable = variable;
    replicate->write_from = from;
    return on_devices(replicate, write_task, err);
}

static int replicate_evaluate(struct strategy *strategy, const struct batch *batch,
                              const struct step *step, struct strategy_result *ret_result,
                              struct err *err)
{
    struct replicate *replicate = (struct replicate *)strategy;
    const struct model *model = replicate->config.model;
    int rc = replicate->buffers_differ
                 ? strategy_share_buffers(strategy, model, replicate->room.buffer, err)
                 : 0;
    if (rc != 0)
        return rc;
    replicate->buffers_differ = false;
    scatter(replicate, batch, step, false, STEP_WHOLE);
    rc = longest_check(&replicate->config, batch, err);
    if (rc == 0)
        rc = on_devices(replicate, run_parts_task, err);
    if (rc != 0)
        return rc;
    gather(replicate, step, ret_result);
    host_room_show(&replicate->room, model, ret_result);
    return 0;
}

/* Of the largest batch; batches that are accumulated differ by an update. */
static double training_flops(const struct shapes *shapes, const struct strategy_config *config)
{
    const struct strategy_batch *largest = strategy_largest(config);
    int64_t sizes[LIMIT_DEVICES];
    double flops = 0;
    if (largest == NULL)
        return 0;
    chunk_sizes(largest->n, shapes_chunks(config), sizes);
    for (int c = 0; c < shapes_chunks(config) && sizes[c] > 0; c++) {
        const struct shape_key key = shapes_key(config, c, sizes[c], true, largest->part);
        flops += graph_flops(shapes->list[shapes_find(shapes, &key)].graph);
    }
    return flops;
}

static int plan_device(const struct strategy_config *config, const struct shapes *shapes,
                       const struct variable_map *map, int device,
                       struct strategy_memory *ret_memory, struct err *err)
{
    struct replica replica = {.rank = device, .config = config, .shapes = shapes, .map = map};
    int rc = replica_plan(&replica, err);
    if (rc == 0)
        *ret_memory = memory_of(&replica);
    replica_close(&replica);
    return rc;
}

static int replicate_plan(const struct strategy_config *config, struct strategy_memory *ret_memory,
                          double *ret_flops, struct err *err)
{
    struct strategy_memory memory[LIMIT_DEVICES];
    struct shapes shapes = {0};
    struct variable_map map;
    struct arena *arena = arena_new();
    int rc = arena == NULL ? err_set(err, ERR_NOMEM, "out of memory") : 0;
    if (rc == 0)
        rc = check_shards(config, err);
    if (rc == 0)
        rc = build_map(config, arena, &map, err);
    if (rc == 0)
        rc = shapes_build(config, &shapes, err);
    for (int r = 0; rc == 0 && r < config->n_devices; r++)
        rc = plan_device(config, &shapes, &map, r, &memory[r], err);
    if (rc == 0) {
        memcpy(ret_memory, memory, (size_t)config->n_devices * sizeof memory[0]);
        *ret_flops = training_flops(&shapes, config);
    }
    shapes_done(&shapes);
    arena_free(arena);
    return rc;
}

const struct strategy_def strategy_replicate = {
    .plan = replicate_plan,
    .open = replicate_open,
    .close = replicate_close,
    .train = replicate_train,
    .evaluate = replicate_evaluate,
    .read = replicate_read,
    .write = replicate_write,
};
