/* replicate.c: strategy.h by replicas, as DataParallel: a batch is cut by torch.chunk, each
 * device's thread runs its chunk, the graph's all-reduce nodes sum the gradients on the way.
 *
 * Every call hands one task to every device's thread and waits for all. When a replica fails, its
 * thread aborts the collective, so that the others come back too, with ERR_CANCELLED; the first
 * error that is not that is the user's.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/thread.h"
#include "engine/comm/comm.h"
#include "engine/graph/op.h"
#include "engine/parallel/chunk.h"
#include "engine/parallel/replica.h"

struct driver;
typedef int (*task_fn)(struct driver *driver, struct err *err);

/* A device's thread, and what it is to do next. */
struct driver {
    struct strategy *strategy;
    struct thread *thread;
    struct replica replica;
    struct chunk chunk;
    double loss_sum;
    struct replica_outputs outputs; /* this chunk's part of the strategy's */
    task_fn task;
    struct err err;
};

struct strategy {
    struct strategy_config config;
    struct shapes shapes;
    struct arena *arena; /* holds the map */
    struct variable_map map;
    struct comm *comm; /* NULL with one device */
    int64_t *predictions;
    float *outputs;      /* NULL: not kept */
    void *buffer;        /* room for any one of the model's buffers */
    bool buffers_differ; /* between the replicas, since a training step */
    int variable;        /* that read and write are about */
    void *read_to;
    const void *write_from;
    struct driver drivers[];
};

static void run_task(void *context)
{
    struct driver *driver = context;
    struct strategy *strategy = driver->strategy;
    if (driver->task(driver, &driver->err) != 0 && strategy->comm != NULL)
        comm_abort(strategy->comm);
}

static int replica_error(const struct strategy *strategy, int rank, struct err *err)
{
    if (strategy->config.n_devices == 1)
        return err->code;
    return err_context(err, "replica %d on %s", rank, strategy->config.devices[rank].name);
}

/* The error that made the others stop. */
static int first_error(const struct strategy *strategy, int n, struct err *err)
{
    const struct driver *cause = NULL;
    for (int r = 0; r < n; r++) {
        const struct driver *driver = &strategy->drivers[r];
        if (driver->err.code == 0)
            continue;
        if (cause == NULL ||
            (cause->err.code == ERR_CANCELLED && driver->err.code != ERR_CANCELLED))
            cause = driver;
    }
    if (cause == NULL)
        return 0;
    *err = cause->err;
    return replica_error(strategy, cause->replica.rank, err);
}

/* Runs `task` on the first n devices, returns when all have. */
static int on_devices(struct strategy *strategy, int n, task_fn task, struct err *err)
{
    for (int r = 0; r < n; r++) {
        struct driver *driver = &strategy->drivers[r];
        driver->task = task;
        driver->err = (struct err)ERR_INIT;
        thread_submit(driver->thread, run_task, driver);
    }
    for (int r = 0; r < n; r++)
        thread_wait(strategy->drivers[r].thread);
    return first_error(strategy, n, err);
}

static int open_task(struct driver *driver, struct err *err)
{
    return replica_open(&driver->replica, err);
}

static int close_task(struct driver *driver, struct err *err)
{
    (void)err;
    replica_close(&driver->replica);
    return 0;
}

static int run_chunk_task(struct driver *driver, struct err *err)
{
    driver->loss_sum = 0;
    if (driver->chunk.batch.n == 0 && !driver->chunk.training)
        return 0;
    return replica_run(&driver->replica, &driver->chunk, &driver->loss_sum, &driver->outputs, err);
}

static int read_task(struct driver *driver, struct err *err)
{
    struct strategy *strategy = driver->strategy;
    return replica_read(&driver->replica, strategy->variable, strategy->read_to, err);
}

static int write_task(struct driver *driver, struct err *err)
{
    struct strategy *strategy = driver->strategy;
    return replica_write(&driver->replica, strategy->variable, strategy->write_from, err);
}

static int64_t largest_batch(const int64_t *batches, size_t n)
{
    int64_t largest = 0;
    for (size_t i = 0; i < n; i++)
        if (batches[i] > largest)
            largest = batches[i];
    return largest;
}

static size_t largest_buffer(const struct model *model)
{
    size_t largest = 0;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *v = &model->variables[i];
        size_t bytes = (size_t)shape_count(&v->shape) * dtype_size(v->dtype);
        if (v->kind == VARIABLE_BUFFER && bytes > largest)
            largest = bytes;
    }
    return largest;
}

/* What the host needs: graphs, the map, gathered predictions. */
static int open_host(struct strategy *strategy, struct err *err)
{
    const struct strategy_config *config = &strategy->config;
    int64_t most = largest_batch(config->eval_batches, config->n_eval_batches);
    strategy->arena = arena_new();
    strategy->predictions =
        calloc((size_t)(most * config->model->loss_terms) + 1, sizeof *strategy->predictions);
    strategy->buffer = malloc(largest_buffer(config->model) + 1);
    if (config->keep_outputs)
        strategy->outputs =
            calloc((size_t)(most * shape_count(&config->model->output)), sizeof(float));
    if (strategy->arena == NULL || strategy->predictions == NULL || strategy->buffer == NULL ||
        (config->keep_outputs && strategy->outputs == NULL))
        return err_set(err, ERR_NOMEM, "out of memory");
    int rc = variable_map_build(config->model, strategy->arena, &strategy->map, err);
    if (rc == 0)
        rc = shapes_build(config, &strategy->shapes, err);
    if (rc == 0 && config->n_devices > 1)
        rc = comm_new(config->n_devices, &strategy->comm, err);
    return rc;
}

static int start_drivers(struct strategy *strategy, struct err *err)
{
    for (int r = 0; r < strategy->config.n_devices; r++) {
        const struct device_config *device = &strategy->config.devices[r];
        struct driver *driver = &strategy->drivers[r];
        driver->strategy = strategy;
        driver->replica = (struct replica){
            .rank = r,
            .config = &strategy->config,
            .shapes = &strategy->shapes,
            .map = &strategy->map,
        };
        if (strategy->comm != NULL)
            driver->chunk.collective = comm_collective(strategy->comm, r);
        int rc = thread_start(device->name, device->cores, device->n_cores, device->n_threads,
                              &driver->thread, err);
        if (rc != 0)
            return replica_error(strategy, r, err);
    }
    return 0;
}

int strategy_open(const struct strategy_config *config, struct strategy **ret_strategy,
                  struct err *err)
{
    assert(config->n_devices >= 1 && config->n_devices <= LIMIT_DEVICES);
    struct strategy *strategy =
        calloc(1, sizeof *strategy + (size_t)config->n_devices * sizeof strategy->drivers[0]);
    if (strategy == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    strategy->config = *config;
    int rc = open_host(strategy, err);
    if (rc == 0)
        rc = start_drivers(strategy, err);
    if (rc == 0)
        rc = on_devices(strategy, config->n_devices, open_task, err);
    if (rc != 0)
        strategy_close(strategy);
    else
        *ret_strategy = strategy;
    return rc;
}

void strategy_close(struct strategy *strategy)
{
    if (strategy == NULL)
        return;
    int started = 0;
    while (started < strategy->config.n_devices && strategy->drivers[started].thread != NULL)
        started++;
    on_devices(strategy, started, close_task, &(struct err)ERR_INIT);
    for (int r = 0; r < started; r++)
        thread_stop(strategy->drivers[r].thread);
    comm_free(strategy->comm);
    shapes_done(&strategy->shapes);
    arena_free(strategy->arena);
    free(strategy->predictions);
    free(strategy->outputs);
    free(strategy->buffer);
    free(strategy);
}

static struct batch rows(const struct model *model, const struct batch *batch, int64_t first,
                         int64_t n)
{
    struct batch chunk = {
        .n = n,
        .targets = (const char *)batch->targets + replica_target_bytes(model, first),
    };
    for (int i = 0; i < model->n_inputs; i++)
        chunk.inputs[i] = (const char *)batch->inputs[i] + replica_data_bytes(model, i, first);
    return chunk;
}

/* Cuts the batch: each driver gets its rows, and the position of its first sample. */
static void scatter(struct strategy *strategy, const struct batch *batch, const struct step *step,
                    bool training, enum step_part part)
{
    const struct model *model = strategy->config.model;
    int64_t sizes[LIMIT_DEVICES], first = 0;
    chunk_sizes(batch->n, strategy->config.n_devices, sizes);
    for (int r = 0; r < strategy->config.n_devices; r++) {
        struct driver *driver = &strategy->drivers[r];
        struct chunk *chunk = &driver->chunk;
        chunk->training = training;
        chunk->part = part;
        chunk->step = *step;
        chunk->step.first_sample += first;
        chunk->batch = rows(model, batch, first, sizes[r]);
        driver->outputs.predictions = strategy->predictions + first * model->loss_terms;
        if (strategy->outputs != NULL)
            driver->outputs.outputs = strategy->outputs + first * shape_count(&model->output);
        first += sizes[r];
    }
}

static void gather(const struct strategy *strategy, const struct step *step,
                   struct strategy_result *result)
{
    double sum = 0;
    for (int r = 0; r < strategy->config.n_devices; r++) {
        const struct driver *driver = &strategy->drivers[r];
        const struct batch *chunk = &driver->chunk.batch;
        result->replicas[r] = (struct replica_result){
            .samples = chunk->n,
            .loss_sum = driver->loss_sum,
            .loss_divisor = graph_loss_divisor(strategy->config.model, chunk->targets, chunk->n),
        };
        sum += driver->loss_sum;
    }
    result->loss = sum / step->loss_divisor;
    result->predictions = NULL;
    result->outputs = NULL;
}

int strategy_train(struct strategy *strategy, const struct batch *batch, enum step_part part,
                   const struct step *step, struct strategy_result *ret_result, struct err *err)
{
    scatter(strategy, batch, step, true, part);
    int rc = on_devices(strategy, strategy->config.n_devices, run_chunk_task, err);
    if (rc != 0)
        return rc;
    strategy->buffers_differ = strategy->config.n_devices > 1;
    gather(strategy, step, ret_result);
    return 0;
}

/* The controller's buffers to all. */
static int broadcast_buffers(struct strategy *strategy, struct err *err)
{
    const struct model *model = strategy->config.model;
    for (size_t i = 0; i < model->n_variables; i++) {
        if (model->variables[i].kind != VARIABLE_BUFFER)
            continue;
        int rc = strategy_read(strategy, (int)i, strategy->buffer, err);
        if (rc == 0)
            rc = strategy_write(strategy, (int)i, strategy->buffer, err);
        if (rc != 0)
            return rc;
    }
    strategy->buffers_differ = false;
    return 0;
}

/* Whether evaluations give class numbers: some losses do, whatever the chunk. */
static bool predicts(const struct strategy *strategy)
{
    const struct shapes *shapes = &strategy->shapes;
    int64_t chunk = strategy->drivers[0].chunk.batch.n;
    return shapes->list[shapes_find(shapes, chunk, false, STEP_WHOLE)].graph->prediction != NULL;
}

int strategy_evaluate(struct strategy *strategy, const struct batch *batch, const struct step *step,
                      struct strategy_result *ret_result, struct err *err)
{
    int rc = strategy->buffers_differ ? broadcast_buffers(strategy, err) : 0;
    if (rc != 0)
        return rc;
    scatter(strategy, batch, step, false, STEP_WHOLE);
    rc = on_devices(strategy, strategy->config.n_devices, run_chunk_task, err);
    if (rc != 0)
        return rc;
    gather(strategy, step, ret_result);
    if (predicts(strategy))
        ret_result->predictions = strategy->predictions;
    ret_result->outputs = strategy->outputs;
    return 0;
}

int strategy_read(struct strategy *strategy, int variable, void *to, struct err *err)
{
    strategy->variable = variable;
    strategy->read_to = to;
    return on_devices(strategy, 1, read_task, err);
}

int strategy_write(struct strategy *strategy, int variable, const void *from, struct err *err)
{
    strategy->variable = variable;
    strategy->write_from = from;
    return on_devices(strategy, strategy->config.n_devices, write_task, err);
}

/* Of the largest batch; batches that are accumulated differ by an update. */
static double training_flops(const struct shapes *shapes, const struct strategy_config *config)
{
    const struct strategy_batch *largest = config->train_batches;
    int64_t sizes[LIMIT_DEVICES];
    double flops = 0;
    if (config->n_train_batches == 0)
        return 0;
    for (size_t i = 1; i < config->n_train_batches; i++)
        if (config->train_batches[i].n > largest->n)
            largest = &config->train_batches[i];
    chunk_sizes(largest->n, config->n_devices, sizes);
    for (int r = 0; r < config->n_devices; r++)
        flops +=
            graph_flops(shapes->list[shapes_find(shapes, sizes[r], true, largest->part)].graph);
    return flops;
}

int strategy_plan(const struct strategy_config *config, struct strategy_memory *ret_memory,
                  double *ret_flops, struct err *err)
{
    struct strategy_memory memory[LIMIT_DEVICES];
    struct shapes shapes = {0};
    struct variable_map map;
    struct arena *arena = arena_new();
    int rc = arena == NULL ? err_set(err, ERR_NOMEM, "out of memory") : 0;
    if (rc == 0)
        rc = variable_map_build(config->model, arena, &map, err);
    if (rc == 0)
        rc = shapes_build(config, &shapes, err);
    for (int r = 0; rc == 0 && r < config->n_devices; r++)
        rc = replica_plan(config, &shapes, &map, r, &memory[r], err);
    if (rc == 0) {
        memcpy(ret_memory, memory, (size_t)config->n_devices * sizeof memory[0]);
        *ret_flops = training_flops(&shapes, config);
    }
    shapes_done(&shapes);
    arena_free(arena);
    return rc;
}
