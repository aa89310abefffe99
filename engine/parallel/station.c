/* station.c: see station.h. */
#include "engine/parallel/station.h"

#include <stdlib.h>

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

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Builds the plans, and counts what they take. */
static int build_plans(struct station *station, struct err *err)
{
    const struct pipeline *pipeline = station->pipeline;
    const struct variable_map *map = &pipeline->maps[station->worker.stage];
    struct strategy_memory *sizes = &station->sizes;
    *sizes = (struct strategy_memory){
        .samples = pipeline->most_rows[station->device_index],
        .variable_bytes = map->bytes,
        .slots = pipeline->slots[station->worker.stage],
        .outboxes = pipeline->outbox_depth[station->worker.stage],
    };
    station->programs = calloc(pipeline->n_graphs + 1, sizeof *station->programs);
    if (station->programs == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < pipeline->n_graphs; i++) {
        const struct pipeline_graph *graph = &pipeline->graphs[i];
        if ((graph->devices >> station->device_index & 1) == 0)
            continue;
        int rc = plan_build(config_of(station)->backend, graph->graph, map,
                            cut_of(station, graph->graph), &station->programs[i].plan, err);
        if (rc != 0)
            return rc;
        const struct plan *plan = station->programs[i].plan;
        sizes->arena_bytes = larger(sizes->arena_bytes, plan->arena_bytes);
        sizes->slot_bytes = larger(sizes->slot_bytes, plan->slot_bytes);
        sizes->outbox_bytes = larger(sizes->outbox_bytes, plan->outbox_bytes);
    }
    return 0;
}

static int allocate(struct station *station, size_t bytes, const char *what,
                    struct memory *ret_memory, struct err *err)
{
    const struct strategy_config *config = config_of(station);
    return memory_alloc(config->backend, station->device,
                        config->devices[station->device_index].name, bytes, what, ret_memory, err);
}

static int create_executors(struct station *station, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < station->pipeline->n_graphs; i++) {
        struct station_program *program = &station->programs[i];
        if (program->plan != NULL)
            rc = executor_new(station->device, program->plan, &program->executor, err);
    }
    return rc;
}

int station_open(struct station *station, struct err *err)
{
    const struct strategy_config *config = config_of(station);
    const struct strategy_memory *sizes = &station->sizes;
    int rc = config->backend->device_open(&config->devices[station->device_index], &station->device,
                                          err);
    if (rc == 0)
        rc = build_plans(station, err);
    if (rc == 0)
        rc = create_executors(station, err);
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

int station_plan(struct station *station, struct err *err)
{
    team_set_size(config_of(station)->devices[station->device_index].n_threads);
    return build_plans(station, err);
}

void station_close(struct station *station)
{
    for (size_t i = 0; station->programs != NULL && i < station->pipeline->n_graphs; i++) {
        executor_free(station->programs[i].executor);
        plan_free(station->programs[i].plan);
    }
    free(station->programs);
    station->programs = NULL;
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

static void set_bases(const struct station *station, int i, void **base)
{
    const struct strategy_memory *sizes = &station->sizes;
    base[SPACE_VARIABLES] = station->variables.at;
    base[SPACE_ARENA] = station->arena.at;
    base[SPACE_SLOT] = at(&station->slots, (size_t)(i % sizes->slots) * sizes->slot_bytes);
    base[SPACE_OUTBOX] =
        at(&station->outboxes, (size_t)(i % sizes->outboxes) * sizes->outbox_bytes);
}

void *station_buffer(const struct station *station, const struct plan_buffer *buffer, int i)
{
    void *base[SPACE_COUNT] = {NULL};
    set_bases(station, i, base);
    return (char *)base[buffer->space] + buffer->offset;
}

int station_run(struct station *station, const struct station_program *program, struct run *run,
                struct err *err)
{
    void *base[SPACE_COUNT] = {NULL};
    set_bases(station, 0, base);
    run->base = base;
    return executor_run(program->executor, run, err);
}

int station_run_section(struct station *station, const struct station_program *program,
                        enum section section, int i, struct run *run, struct err *err)
{
    void *base[SPACE_COUNT] = {NULL};
    set_bases(station, i, base);
    run->base = base;
    return executor_run_section(program->executor, section, run, err);
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
