/* replica.c: see replica.h. The chunk is copied to the device, whatever the device: on a CPU that
 * is one pass over data that the first layer is about to read, by the core that will. */
#include "engine/parallel/replica.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/base/team.h"
#include "engine/parallel/rows.h"

static bool meets(const struct shapes *shapes, size_t graph, int rank)
{
    return (shapes->list[graph].replicas >> rank & 1) != 0;
}

static size_t tensor_bytes(const struct shape *shape, enum dtype dtype)
{
    return (size_t)shape_count(shape) * dtype_size(dtype);
}

static int allocate(struct replica *replica, size_t bytes, const char *what,
                    struct memory *ret_memory, struct err *err)
{
    const struct strategy_config *config = replica->config;
    return memory_alloc(config->backend, replica->device, config->devices[replica->rank].name,
                        bytes, what, ret_memory, err);
}

static int program_build(struct replica *replica, size_t i, size_t *arena_bytes, struct err *err)
{
    struct program *program = &replica->programs[i];
    int rc = plan_build(replica->config->backend, replica->shapes->list[i].graph, replica->map,
                        CUT_NONE, &program->plan, err);
    if (rc == 0)
        rc = executor_new(replica->device, program->plan, &program->executor, err);
    if (rc == 0 && program->plan->arena_bytes > *arena_bytes)
        *arena_bytes = program->plan->arena_bytes;
    return rc;
}

int replica_open(struct replica *replica, struct err *err)
{
    const struct strategy_config *config = replica->config;
    const struct shapes *shapes = replica->shapes;
    int64_t largest = shapes->largest[replica->rank];
    size_t arena_bytes = 0;
    replica->programs = calloc(shapes->n + 1, sizeof *replica->programs);
    if (replica->programs == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    int rc = config->backend->device_open(&config->devices[replica->rank], &replica->device, err);
    for (size_t i = 0; rc == 0 && i < shapes->n; i++)
        if (meets(shapes, i, replica->rank))
            rc = program_build(replica, i, &arena_bytes, err);
    if (rc == 0)
        rc = allocate(replica, replica->map->bytes, "variables", &replica->variables, err);
    if (rc == 0)
        rc = allocate(replica, arena_bytes, "activations", &replica->arena, err);
    for (int i = 0; rc == 0 && i < config->model->n_inputs; i++)
        rc = allocate(replica, rows_data_bytes(config->model, i, largest), "inputs",
                      &replica->data[i], err);
    if (rc == 0)
        rc = allocate(replica, rows_target_bytes(config->model, largest), "targets",
                      &replica->target, err);
    return rc;
}

void replica_close(struct replica *replica)
{
    for (size_t i = 0; replica->programs != NULL && i < replica->shapes->n; i++) {
        executor_free(replica->programs[i].executor);
        plan_free(replica->programs[i].plan);
    }
    free(replica->programs);
    replica->programs = NULL;
    if (replica->device == NULL)
        return;
    const struct backend *backend = replica->config->backend;
    memory_free(backend, replica->device, &replica->variables);
    memory_free(backend, replica->device, &replica->arena);
    for (int i = 0; i < MODEL_MAX_INPUTS; i++)
        memory_free(backend, replica->device, &replica->data[i]);
    memory_free(backend, replica->device, &replica->target);
    backend->device_close(replica->device);
    replica->device = NULL;
}

static int write_chunk(struct replica *replica, const struct batch *batch, struct err *err)
{
    const struct backend *backend = replica->config->backend;
    const struct model *model = replica->config->model;
    if (batch->n == 0)
        return 0;
    int rc = 0;
    for (int i = 0; rc == 0 && i < model->n_inputs; i++)
        rc = backend->write(replica->device, replica->data[i].at, batch->inputs[i],
                            rows_data_bytes(model, i, batch->n), err);
    if (rc != 0)
        return rc;
    return backend->write(replica->device, replica->target.at, batch->targets,
                          rows_target_bytes(model, batch->n), err);
}

static int read_buffer(struct replica *replica, void *const *base, const struct plan_buffer *buffer,
                       void *to, size_t bytes, struct err *err)
{
    if (buffer->space == SPACE_NONE)
        return 0;
    const char *from = (const char *)base[buffer->space] + buffer->offset;
    return replica->config->backend->read(replica->device, to, from, bytes, err);
}

/* The sum of the chunk's losses; those of its samples where they are wanted. */
static int read_loss(struct replica *replica, const struct plan *plan, void *const *base, int64_t n,
                     double *losses, double *ret_loss, struct err *err)
{
    double loss = 0;
    if (losses == NULL)
        return read_buffer(replica, base, &plan->loss, ret_loss, sizeof *ret_loss, err);
    int rc = read_buffer(replica, base, &plan->loss, losses, (size_t)n * sizeof *losses, err);
    for (int64_t i = 0; rc == 0 && i < n; i++)
        loss += losses[i];
    *ret_loss = loss;
    return rc;
}

static int read_outputs(struct replica *replica, const struct plan *plan, void *const *base,
                        int64_t n, const struct replica_outputs *outputs, struct err *err)
{
    const struct model *model = replica->config->model;
    size_t terms = (size_t)(n * model->loss_terms);
    int rc = read_buffer(replica, base, &plan->prediction, outputs->samples.predictions,
                         terms * sizeof *outputs->samples.predictions, err);
    if (rc != 0 || outputs->samples.outputs == NULL)
        return rc;
    return read_buffer(replica, base, &plan->output, outputs->samples.outputs,
                       (size_t)n * tensor_bytes(&model->output, DTYPE_F32), err);
}

static const struct program *find_program(const struct replica *replica, const struct chunk *chunk)
{
    return &replica->programs[shapes_find(replica->shapes, &chunk->key)];
}

static int read_statistics(struct replica *replica, const struct plan *plan, void *const *base,
                           struct observed *observed, struct err *err)
{
    double statistics[STATISTIC_COUNT];
    int rc = 0, n = plan->recorded != NULL ? replica->config->model->n_recorded : 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        if (plan->recorded[i].space == SPACE_NONE)
            continue;
        rc = read_buffer(replica, base, &plan->recorded[i], statistics, sizeof statistics, err);
        if (rc == 0)
            observed_add(observed, replica->rank, plan->graph, i, statistics);
    }
    return rc;
}

int replica_run(struct replica *replica, const struct chunk *chunk, double *ret_loss,
                const struct replica_outputs *outputs, struct err *err)
{
    const struct program *program = find_program(replica, chunk);
    assert(program->executor != NULL);
    void *base[SPACE_COUNT] = {
        [SPACE_VARIABLES] = replica->variables.at,
        [SPACE_ARENA] = replica->arena.at,
        [SPACE_TARGET] = replica->target.at,
    };
    for (int i = 0; i < MODEL_MAX_INPUTS; i++)
        base[SPACE_DATA + i] = replica->data[i].at;
    const struct run run = {.base = base, .step = &chunk->step, .collective = chunk->collective};
    double loss = 0;
    int rc = write_chunk(replica, &chunk->batch, err);
    if (rc == 0)
        rc = executor_run(program->executor, &run, err);
    if (rc == 0)
        rc = read_loss(replica, program->plan, base, chunk->batch.n, outputs->samples.losses, &loss,
                       err);
    if (rc == 0 && !chunk->key.training)
        rc = read_outputs(replica, program->plan, base, chunk->batch.n, outputs, err);
    if (rc == 0 && chunk->step.record)
        rc = read_statistics(replica, program->plan, base, outputs->observed, err);
    if (rc == 0)
        *ret_loss = loss;
    return rc;
}

/* What of a variable is on this device: bytes, and where they are among all of it. */
static size_t own_bytes(const struct replica *replica, int variable, size_t *ret_first)
{
    const struct variable *v = &replica->config->model->variables[variable];
    int parts = v->kind == VARIABLE_OPTIMIZER ? shapes_optimizer_parts(replica->config) : 1;
    const struct variable_part part = variable_part(v, parts, parts > 1 ? replica->rank : 0);
    *ret_first = (size_t)part.first * dtype_size(v->dtype);
    return (size_t)part.count * dtype_size(v->dtype);
}

int replica_read(struct replica *replica, int variable, void *to, struct err *err)
{
    const char *from = (const char *)replica->variables.at + replica->map->offset[variable];
    size_t first, bytes = own_bytes(replica, variable, &first);
    return replica->config->backend->read(replica->device, (char *)to + first, from, bytes, err);
}

int replica_write(struct replica *replica, int variable, const void *from, struct err *err)
{
    char *to = (char *)replica->variables.at + replica->map->offset[variable];
    size_t first, bytes = own_bytes(replica, variable, &first);
    return replica->config->backend->write(replica->device, to, (const char *)from + first, bytes,
                                           err);
}

int replica_plan(const struct strategy_config *config, const struct shapes *shapes,
                 const struct variable_map *map, int rank, struct strategy_memory *ret_memory,
                 struct err *err)
{
    int64_t largest = shapes->largest[rank];
    struct strategy_memory memory = {
        .samples = largest,
        .variable_bytes = map->bytes,
        .input_bytes = rows_target_bytes(config->model, largest),
    };
    for (int i = 0; i < config->model->n_inputs; i++)
        memory.input_bytes += rows_data_bytes(config->model, i, largest);
    team_set_size(config->devices[rank].n_threads);
    for (size_t i = 0; i < shapes->n; i++) {
        struct plan *plan;
        if (!meets(shapes, i, rank))
            continue;
        int rc = plan_build(config->backend, shapes->list[i].graph, map, CUT_NONE, &plan, err);
        if (rc != 0)
            return rc;
        if (plan->arena_bytes > memory.arena_bytes)
            memory.arena_bytes = plan->arena_bytes;
        plan_free(plan);
    }
    *ret_memory = memory;
    return 0;
}
