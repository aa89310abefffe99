/* station.c: see station.h. */
#include "engine/parallel/station.h"

#include "engine/base/team.h"

static const struct strategy_config *config_of(const struct station *station)
{
    return station->pipeline->config;
}

/* Micro-batches run by sections; what begins and ends a window runs whole. */
static enum plan_cut cut_of(const struct station *station, const struct graph *graph)
{
    if (graph->options.batch == 0)
        return CUT_NONE;
    return timetable_splits_backward(config_of(station)->model->job->parallel.schedule)
               ? CUT_WEIGHTS
               : CUT_BACKWARD;
}

static void pad(struct station *station)
{
    const struct backend *backend = config_of(station)->backend;
    struct strategy_memory *sizes = &station->sizes;
    sizes->padding_bytes = memory_padding(backend, sizes->variable_bytes) +
                           memory_padding(backend, sizes->arena_bytes) +
                           memory_padding(backend, (size_t)sizes->slots * sizes->slot_bytes) +
                           memory_padding(backend, (size_t)sizes->outboxes * sizes->outbox_bytes);
}

int station_plan(struct station *station, struct err *err)
{
    const struct pipeline *pipeline = station->pipeline;
    const struct strategy_config *config = config_of(station);
    const struct variable_map *map = &pipeline->maps[station->worker.stage];
    station->sizes = (struct strategy_memory){
        .samples = pipeline->most_rows[station->device_index],
        .variable_bytes = map->bytes,
        .slots = pipeline->slots[station->worker.stage],
        .outboxes = pipeline->outbox_depth[station->worker.stage],
    };
    team_set_size(config->devices[station->device_index].n_threads);
    int rc = compiled_new(pipeline->n_graphs, &station->compiled, err);
    for (size_t i = 0; rc == 0 && i < pipeline->n_graphs; i++) {
        const struct pipeline_graph *graph = &pipeline->graphs[i];
        if ((graph->devices >> station->device_index & 1) != 0)
            rc = compiled_plan(&station->compiled, i, config->backend, graph->graph, map,
                               cut_of(station, graph->graph), &station->sizes, err);
    }
    pad(station);
    return rc;
}

static int allocate(struct station *station, size_t bytes, const char *what,
                    struct memory *ret_memory, struct err *err)
{
    const struct strategy_config *config = config_of(station);
    return memory_alloc(config->backend, station->device,
                        config->devices[station->device_index].name, bytes, what, ret_memory, err);
}

int station_open(struct station *station, struct err *err)
{
    const struct strategy_config *config = config_of(station);
    const struct strategy_memory *sizes = &station->sizes;
    int rc = config->backend->device_open(&config->devices[station->device_index], &station->device,
                                          err);
    if (rc == 0)
        rc = compiled_create(&station->compiled, station->device, err);
    if (rc == 0)
        rc = allocate(station, sizes->variable_bytes, "variables", &station->variables, err);
    if (rc == 0)
        rc = allocate(station, sizes->arena_bytes, "activations", &station->arena, err);
    if (rc == 0)
        rc = allocate(station, (size_t)sizes->slots * sizes->slot_bytes, "micro-batches",
                      &station->slots, err);
    if (rc == 0)
        rc = allocate(station, (size_t)sizes->outboxes * sizes->outbox_bytes, "outboxes",
                      &station->outboxes, err);
    return rc;
}

void station_close(struct station *station)
{
    compiled_free(&station->compiled);
    if (station->device == NULL)
        return;
    const struct backend *backend = config_of(station)->backend;
    memory_free(backend, station->device, &station->variables);
    memory_free(backend, station->device, &station->arena);
    memory_free(backend, station->device, &station->slots);
    memory_free(backend, station->device, &station->outboxes);
    backend->device_close(station->device);
    station->device = NULL;
}

static char *at(const struct memory *memory, size_t offset)
{
    return memory->at == NULL ? NULL : (char *)memory->at + offset;
}

struct station_bases station_bases(const struct station *station, int i)
{
    const struct strategy_memory *sizes = &station->sizes;
    return (struct station_bases){{
        [SPACE_VARIABLES] = station->variables.at,
        [SPACE_ARENA] = station->arena.at,
        [SPACE_SLOT] = at(&station->slots, (size_t)(i % sizes->slots) * sizes->slot_bytes),
        [SPACE_OUTBOX] =
            at(&station->outboxes, (size_t)(i % sizes->outboxes) * sizes->outbox_bytes),
    }};
}

void *station_buffer(const struct station *station, const struct plan_buffer *buffer, int i)
{
    const struct station_bases bases = station_bases(station, i);
    return (char *)bases.at[buffer->space] + buffer->offset;
}

static size_t variable_bytes(const struct station *station, int variable)
{
    const struct variable *v = &config_of(station)->model->variables[variable];
    return (size_t)shape_count(&v->shape) * dtype_size(v->dtype);
}

static void *variable_at(const struct station *station, int variable)
{
    const struct variable_map *map = &station->pipeline->maps[station->worker.stage];
    return (char *)station->variables.at + map->offset[variable];
}

int station_read(struct station *station, int variable, void *to, struct err *err)
{
    return config_of(station)->backend->read(station->device, to, variable_at(station, variable),
                                             variable_bytes(station, variable), err);
}

int station_write(struct station *station, int variable, const void *from, struct err *err)
{
    return config_of(station)->backend->write(station->device, variable_at(station, variable), from,
                                              variable_bytes(station, variable), err);
}
