/* replica.c: see replica.h. The chunk is copied to the device, whatever the device: on a CPU that
 * is one pass over data that the first layer is about to read, by the core that will. */
#include "engine/parallel/replica.h"

#include <assert.h>

#include "engine/base/team.h"
#include "engine/parallel/results.h"
#include "engine/parallel/rows.h"

static bool meets(const struct shapes *shapes, size_t graph, int rank)
{
    return (shapes->list[graph].replicas >> rank & 1) != 0;
}

static int allocate(struct replica *replica, size_t bytes, const char *what,
                    struct memory *ret_memory, struct err *err)
{
    const struct strategy_config *config = replica->config;
    return memory_alloc(config->backend, replica->device, config->devices[replica->rank].name,
                        bytes, what, ret_memory, err);
}

static void pad(struct replica *replica)
{
    const struct strategy_config *config = replica->config;
    struct strategy_memory *sizes = &replica->sizes;
    sizes->padding_bytes =
        memory_padding(config->backend, sizes->variable_bytes) +
        memory_padding(config->backend, sizes->arena_bytes) +
        memory_padding(config->backend, rows_target_bytes(config->model, sizes->samples));
    for (int i = 0; i < config->model->n_inputs; i++)
        sizes->padding_bytes +=
            memory_padding(config->backend, rows_data_bytes(config->model, i, sizes->samples));
}

int replica_plan(struct replica *replica, struct err *err)
{
    const struct strategy_config *config = replica->config;
    const struct shapes *shapes = replica->shapes;
    int64_t largest = shapes->largest[replica->rank];
    replica->sizes = (struct strategy_memory){
        .samples = largest,
        .variable_bytes = replica->map->bytes,
        .input_bytes = rows_target_bytes(config->model, largest),
    };
    for (int i = 0; i < config->model->n_inputs; i++)
        replica->sizes.input_bytes += rows_data_bytes(config->model, i, largest);
    team_set_size(config->devices[replica->rank].n_threads);
    int rc = compiled_new(shapes->n, &replica->compiled, err);
    for (size_t i = 0; rc == 0 && i < shapes->n; i++)
        if (meets(shapes, i, replica->rank))
            rc = compiled_plan(&replica->compiled, i, config->backend, shapes->list[i].graph,
                               replica->map, CUT_NONE, &replica->sizes, err);
    pad(replica);
    return rc;
}

int replica_open(struct replica *replica, struct err *err)
{
    const struct strategy_config *config = replica->config;
    const struct strategy_memory *sizes = &replica->sizes;
    int rc = config->backend->device_open(&config->devices[replica->rank], &replica->device, err);
    if (rc == 0)
        rc = compiled_create(&replica->compiled, replica->device, err);
    if (rc == 0)
        rc = allocate(replica, sizes->variable_bytes, "variables", &replica->variables, err);
    if (rc == 0)
        rc = allocate(replica, sizes->arena_bytes, "activations", &replica->arena, err);
    for (int i = 0; rc == 0 && i < config->model->n_inputs; i++)
        rc = allocate(replica, rows_data_bytes(config->model, i, sizes->samples), "inputs",
                      &replica->data[i], err);
    if (rc == 0)
        rc = allocate(replica, rows_target_bytes(config->model, sizes->samples), "targets",
                      &replica->target, err);
    return rc;
}

void replica_close(struct replica *replica)
{
    compiled_free(&replica->compiled);
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

int replica_run(struct replica *replica, const struct chunk *chunk, double *ret_loss,
                const struct replica_outputs *outputs, struct err *err)
{
    const struct compiled *compiled =
        &replica->compiled.items[shapes_find(replica->shapes, &chunk->key)];
    int64_t n = chunk->batch.n;
    assert(compiled->executor != NULL);
    void *base[SPACE_COUNT] = {
        [SPACE_VARIABLES] = replica->variables.at,
        [SPACE_ARENA] = replica->arena.at,
        [SPACE_TARGET] = replica->target.at,
    };
    for (int i = 0; i < MODEL_MAX_INPUTS; i++)
        base[SPACE_DATA + i] = replica->data[i].at;
    const struct run run = {.base = base, .step = &chunk->step, .collective = chunk->collective};
    const struct results results = {replica->config->backend, replica->device, compiled->plan,
                                    base};
    double loss = 0;
    int rc = write_chunk(replica, &chunk->batch, err);
    if (rc == 0)
        rc = executor_run(compiled->executor, &run, err);
    if (rc == 0)
        rc = results_loss(&results, n, outputs->samples.losses, &loss, err);
    if (rc == 0 && !chunk->key.training)
        rc = results_samples(&results, n, &outputs->samples, err);
    if (rc == 0 && chunk->step.record)
        rc = results_observe(&results, ~0u, replica->rank, outputs->observed, err);
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
