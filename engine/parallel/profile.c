/* profile.c: see profile.h. The whole model runs as one device would run it, on samples of zeros:
 * what a kernel takes does not depend on its numbers. */
#include "engine/parallel/profile.h"

#include <float.h>
#include <stdlib.h>

#include "engine/base/thread.h"
#include "engine/exec/executor.h"
#include "engine/ops/registry.h"
#include "engine/parallel/estimate.h"
#include "engine/parallel/memory.h"
#include "engine/parallel/rows.h"

enum { RUNS = 4 }; /* the first one touches the memory */

/* What the device's thread needs. */
struct profile {
    const struct profile_config *config;
    struct balance_layer *layers;
    struct arena *arena;
    struct graph *graph;
    struct plan *plan;
    struct device *device;
    struct executor *executor;
    struct memory variables, activations, data[MODEL_MAX_INPUTS], target;
    double *seconds; /* by step of the plan: of this run; behind them: the quickest */
    struct err err;
};

static int allocate(struct profile *profile, size_t bytes, const char *what,
                    struct memory *ret_memory, struct err *err)
{
    const struct profile_config *config = profile->config;
    return memory_alloc(config->backend, profile->device, config->device->name, bytes, what,
                        ret_memory, err);
}

static int build(struct profile *profile, struct err *err)
{
    const struct profile_config *config = profile->config;
    const struct graph_options options = {
        .batch = config->rows, .training = true, .part = STEP_FIRST, .n_replicas = 1};
    struct variable_map map;
    profile->arena = arena_new();
    int rc = profile->arena != NULL ? 0 : err_set(err, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = variable_map_build(config->model, NULL, 0, profile->arena, &map, err);
    if (rc == 0)
        rc = graph_build(config->model, &op_registry, &options, &profile->graph, err);
    if (rc == 0)
        rc = plan_build(config->backend, profile->graph, &map, CUT_NONE, &profile->plan, err);
    if (rc == 0)
        rc = config->backend->device_open(config->device, &profile->device, err);
    if (rc == 0)
        rc = executor_new(profile->device, profile->plan, &profile->executor, err);
    if (rc == 0)
        rc = allocate(profile, map.bytes, "variables", &profile->variables, err);
    if (rc == 0)
        rc = allocate(profile, profile->plan->arena_bytes, "activations", &profile->activations,
                      err);
    return rc;
}

/* All steps of each sample are valid. */
static int write_lengths(struct profile *profile, const struct model_input *input,
                         const struct memory *memory, struct err *err)
{
    const struct profile_config *config = profile->config;
    const struct model_input *whole = &config->model->inputs[input->of];
    int rc = 0;
    for (int64_t i = 0; rc == 0 && i < config->rows; i++)
        rc = config->backend->write(profile->device, (int64_t *)memory->at + i,
                                    &whole->shape.dim[0], sizeof whole->shape.dim[0], err);
    return rc;
}

static int make_samples(struct profile *profile, struct err *err)
{
    const struct profile_config *config = profile->config;
    const struct model *model = config->model;
    int rc =
        allocate(profile, rows_target_bytes(model, config->rows), "targets", &profile->target, err);
    for (int i = 0; rc == 0 && i < model->n_inputs; i++) {
        rc = allocate(profile, rows_data_bytes(model, i, config->rows), "inputs", &profile->data[i],
                      err);
        if (rc == 0 && model->inputs[i].of >= 0)
            rc = write_lengths(profile, &model->inputs[i], &profile->data[i], err);
    }
    profile->seconds = calloc(2 * profile->plan->n_steps + 1, sizeof *profile->seconds);
    return rc == 0 && profile->seconds == NULL ? err_set(err, ERR_NOMEM, "out of memory") : rc;
}

static int run_once(struct profile *profile, struct err *err)
{
    const struct step step = {.number = 1, .loss_divisor = 1, .gradient_scale = 1};
    void *base[SPACE_COUNT] = {
        [SPACE_VARIABLES] = profile->variables.at,
        [SPACE_ARENA] = profile->activations.at,
        [SPACE_TARGET] = profile->target.at,
    };
    const struct run run = {.base = base, .step = &step};
    for (int i = 0; i < MODEL_MAX_INPUTS; i++)
        base[SPACE_DATA + i] = profile->data[i].at;
    return executor_time(profile->executor, &run, profile->seconds, err);
}

static void add_times(struct profile *profile)
{
    const struct plan *plan = profile->plan;
    size_t n_layers = profile->config->model->job->model.n_layers;
    const double *quickest = profile->seconds + plan->n_steps;
    for (size_t i = 0; i < n_layers; i++)
        profile->layers[i].forward = profile->layers[i].backward = profile->layers[i].weight = 0;
    for (size_t i = 0; i < plan->n_steps; i++)
        estimate_add(plan->steps[i].node, quickest[i], n_layers, profile->layers);
}

static int run_all(struct profile *profile, struct err *err)
{
    size_t n = profile->plan->n_steps;
    double *quickest = profile->seconds + n;
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        quickest[i] = DBL_MAX;
    for (int r = 0; rc == 0 && r < RUNS; r++) {
        rc = run_once(profile, err);
        for (size_t i = 0; rc == 0 && i < n; i++)
            if (profile->seconds[i] < quickest[i])
                quickest[i] = profile->seconds[i];
    }
    if (rc == 0)
        add_times(profile);
    return rc;
}

static void done(struct profile *profile)
{
    const struct backend *backend = profile->config->backend;
    executor_free(profile->executor);
    plan_free(profile->plan);
    graph_free(profile->graph);
    arena_free(profile->arena);
    free(profile->seconds);
    if (profile->device == NULL)
        return;
    memory_free(backend, profile->device, &profile->variables);
    memory_free(backend, profile->device, &profile->activations);
    memory_free(backend, profile->device, &profile->target);
    for (int i = 0; i < MODEL_MAX_INPUTS; i++)
        memory_free(backend, profile->device, &profile->data[i]);
    backend->device_close(profile->device);
}

static void run_task(void *context)
{
    struct profile *profile = context;
    int rc = build(profile, &profile->err);
    if (rc == 0)
        rc = make_samples(profile, &profile->err);
    if (rc == 0)
        run_all(profile, &profile->err);
    done(profile);
}

int profile_layers(const struct profile_config *config, struct balance_layer *layers,
                   struct err *err)
{
    const struct device_config *device = config->device;
    struct profile profile = {.config = config, .layers = layers, .err = ERR_INIT};
    struct thread *thread = NULL;
    int rc =
        thread_start(device->name, device->cores, device->n_cores, device->n_threads, &thread, err);
    if (rc != 0)
        return rc;
    thread_submit(thread, run_task, &profile);
    thread_stop(thread);
    if (profile.err.code == 0)
        return 0;
    *err = profile.err;
    return err_context(err, "measuring the layers on %s", device->name);
}
