/* profile.c: see profile.h. The whole model runs as one device would run it, on numbers as
 * they might be: what some kernels take depends on them. */
#include "engine/parallel/profile.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/exec/executor.h"
#include "engine/graph/op.h"
#include "engine/ops/registry.h"
#include "engine/parallel/estimate.h"
#include "engine/parallel/memory.h"
#include "engine/parallel/rates.h"
#include "engine/parallel/rows.h"

enum { LEAST_RUNS = 4 }; /* the first one touches the memory */

/* What the device's thread needs. */
struct profiling {
    const struct profile_config *config;
    enum step_part part;
    double least_seconds;                                      /* of all runs */
    int (*take)(struct profiling *profiling, struct err *err); /* what was measured */
    void *taker;
    struct arena *arena;
    struct variable_map map;
    struct graph *graph;
    struct plan *plan;
    struct device *device;
    struct executor *executor;
    struct memory variables, activations, data[MODEL_MAX_INPUTS], target;
    double *seconds; /* by step of the plan: of this run; behind them: the quickest */
    struct err err;
};

static int allocate(struct profiling *profiling, size_t bytes, const char *what,
                    struct memory *ret_memory, struct err *err)
{
    const struct profile_config *config = profiling->config;
    return memory_alloc(config->backend, profiling->device, config->device->name, bytes, what,
                        ret_memory, err);
}

static int build(struct profiling *profiling, struct err *err)
{
    const struct profile_config *config = profiling->config;
    const struct graph_options options = {
        .batch = config->rows, .training = true, .part = profiling->part, .n_replicas = 1};
    struct variable_map *map = &profiling->map;
    profiling->arena = arena_new();
    int rc = profiling->arena != NULL ? 0 : err_set(err, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = variable_map_build(config->model, NULL, 0, profiling->arena, map, err);
    if (rc == 0)
        rc = graph_build(config->model, &op_registry, &options, &profiling->graph, err);
    if (rc == 0)
        rc = plan_build(config->backend, profiling->graph, map, CUT_NONE, &profiling->plan, err);
    if (rc == 0)
        rc = config->backend->device_open(config->device, &profiling->device, err);
    if (rc == 0)
        rc = executor_new(profiling->device, profiling->plan, &profiling->executor, err);
    if (rc == 0)
        rc = allocate(profiling, map->bytes, "variables", &profiling->variables, err);
    if (rc == 0)
        rc = allocate(profiling, profiling->plan->arena_bytes, "activations",
                      &profiling->activations, err);
    return rc;
}

/* Weights keep about the size of what goes through them; biases and norms are small. */
static int fill_parameters(struct profiling *profiling, struct err *err)
{
    const struct profile_config *config = profiling->config;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < config->model->n_variables; i++) {
        const struct variable *variable = &config->model->variables[i];
        int64_t count = shape_count(&variable->shape);
        int64_t inputs = variable->shape.rank > 1 ? count / variable->shape.dim[0] : 6;
        if (variable->kind == VARIABLE_PARAMETER)
            rc = memory_fill(config->backend, profiling->device, &profiling->variables,
                             profiling->map.offset[i], (size_t)count * sizeof(float),
                             (float)sqrt(6.0 / (double)inputs), err);
    }
    return rc;
}

/* Rows of the table that they look up; as lengths all steps. */
static int write_integers(struct profiling *profiling, const struct model_input *input,
                          const struct memory *memory, struct err *err)
{
    const struct profile_config *config = profiling->config;
    int64_t n = (int64_t)(memory->bytes / sizeof(int64_t));
    int rc = 0;
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        int64_t number = input->of >= 0      ? config->model->inputs[input->of].shape.dim[0]
                         : input->values > 0 ? i * 7919 % input->values
                                             : 0;
        rc = config->backend->write(profiling->device, (int64_t *)memory->at + i, &number,
                                    sizeof number, err);
    }
    return rc;
}

static int write_input(struct profiling *profiling, int i, struct err *err)
{
    const struct model_input *input = &profiling->config->model->inputs[i];
    const struct memory *memory = &profiling->data[i];
    if (input->dtype == DTYPE_I64)
        return write_integers(profiling, input, memory, err);
    return memory_fill(profiling->config->backend, profiling->device, memory, 0, memory->bytes, 1,
                       err);
}

static int make_samples(struct profiling *profiling, struct err *err)
{
    const struct profile_config *config = profiling->config;
    const struct model *model = config->model;
    int rc = allocate(profiling, rows_target_bytes(model, config->rows), "targets",
                      &profiling->target, err);
    for (int i = 0; rc == 0 && i < model->n_inputs; i++) {
        rc = allocate(profiling, rows_data_bytes(model, i, config->rows), "inputs",
                      &profiling->data[i], err);
        if (rc == 0)
            rc = write_input(profiling, i, err);
    }
    profiling->seconds = calloc(2 * profiling->plan->n_steps + 1, sizeof *profiling->seconds);
    return rc == 0 && profiling->seconds == NULL ? err_set(err, ERR_NOMEM, "out of memory") : rc;
}

/* What a lone thread has had of its core leaves out what others take of it meanwhile; of a team it
 * would leave out the wait for the others. */
static double (*clock_for(const struct device_config *device))(void)
{
    return device->n_threads == 1 ? clock_thread_seconds : clock_seconds;
}

static int run_once(struct profiling *profiling, struct err *err)
{
    const struct step step = {.number = 1, .loss_divisor = 1, .gradient_scale = 1};
    void *base[SPACE_COUNT] = {
        [SPACE_VARIABLES] = profiling->variables.at,
        [SPACE_ARENA] = profiling->activations.at,
        [SPACE_TARGET] = profiling->target.at,
    };
    const struct run run = {.base = base, .step = &step};
    for (int i = 0; i < MODEL_MAX_INPUTS; i++)
        base[SPACE_DATA + i] = profiling->data[i].at;
    return executor_time(profiling->executor, &run, clock_for(profiling->config->device),
                         profiling->seconds, err);
}

static int take_layers(struct profiling *profiling, struct err *err)
{
    const struct plan *plan = profiling->plan;
    struct balance_layer *layers = profiling->taker;
    size_t n_layers = profiling->config->model->job->model.n_layers;
    const double *quickest = profiling->seconds + plan->n_steps;
    (void)err;
    for (size_t i = 0; i < n_layers; i++)
        layers[i].forward = layers[i].backward = layers[i].weight = 0;
    for (size_t i = 0; i < plan->n_steps; i++)
        estimate_add(plan->steps[i].node, quickest[i], n_layers, layers);
    return 0;
}

/* NULL without memory. */
static const char *copy(struct arena *arena, const char *text)
{
    return arena_format(arena, "%s", text != NULL ? text : "");
}

static bool take_node(const struct profiling *profiling, size_t i, struct profile *profile)
{
    const struct plan_step *step = &profiling->plan->steps[i];
    const struct node *node = step->node;
    struct profile_node *to = &profile->nodes[i];
    *to = (struct profile_node){
        .op = copy(profile->arena, node->op->name),
        .impl = copy(profile->arena, step->choice.impl),
        .name = copy(profile->arena, node->name),
        .phase = node->phase,
        .layer = node->layer >= 0,
        .seconds = profiling->seconds[profiling->plan->n_steps + i],
        .flops = node->op->flops != NULL ? node->op->flops(node) : 0,
        .bytes = estimate_bytes(node),
    };
    if (node->id >= 0) /* the graph's: not what the planner added */
        to->floor = estimate_node(node, node->low ? &profile->low_rates : &profile->rates);
    profile->seconds += to->seconds;
    profile->floor += to->floor;
    return to->op != NULL && to->impl != NULL && to->name != NULL;
}

static int take_nodes(struct profiling *profiling, struct err *err)
{
    struct profile *profile = profiling->taker;
    const struct backend *backend = profiling->config->backend;
    bool low = profiling->config->model->job->train.precision == PRECISION_BF16;
    size_t n = profiling->plan->n_steps;
    int rc = rates_measure(backend, profiling->device, false, &profile->rates, err);
    profile->low_rates = profile->rates;
    if (rc == 0 && low)
        rc = rates_measure(backend, profiling->device, true, &profile->low_rates, err);
    if (rc != 0)
        return rc;
    profile->nodes = arena_array(profile->arena, n, sizeof *profile->nodes);
    bool kept = profile->nodes != NULL;
    for (size_t i = 0; kept && i < n; i++)
        kept = take_node(profiling, i, profile);
    profile->n_nodes = n;
    return kept ? 0 : err_set(err, ERR_NOMEM, "out of memory for the profile");
}

static int run_all(struct profiling *profiling, struct err *err)
{
    size_t n = profiling->plan->n_steps;
    double *quickest = profiling->seconds + n, all = 0;
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        quickest[i] = DBL_MAX;
    for (int r = 0; rc == 0 && (r < LEAST_RUNS || all < profiling->least_seconds); r++) {
        rc = run_once(profiling, err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            double took = profiling->seconds[i];
            all += took;
            quickest[i] = took < quickest[i] ? took : quickest[i];
        }
    }
    return rc == 0 ? profiling->take(profiling, err) : rc;
}

static void done(struct profiling *profiling)
{
    const struct backend *backend = profiling->config->backend;
    executor_free(profiling->executor);
    plan_free(profiling->plan);
    graph_free(profiling->graph);
    arena_free(profiling->arena);
    free(profiling->seconds);
    if (profiling->device == NULL)
        return;
    memory_free(backend, profiling->device, &profiling->variables);
    memory_free(backend, profiling->device, &profiling->activations);
    memory_free(backend, profiling->device, &profiling->target);
    for (int i = 0; i < MODEL_MAX_INPUTS; i++)
        memory_free(backend, profiling->device, &profiling->data[i]);
    backend->device_close(profiling->device);
}

static void run_task(void *context)
{
    struct profiling *profiling = context;
    int rc = build(profiling, &profiling->err);
    if (rc == 0)
        rc = fill_parameters(profiling, &profiling->err);
    if (rc == 0)
        rc = make_samples(profiling, &profiling->err);
    if (rc == 0)
        run_all(profiling, &profiling->err);
    done(profiling);
}

static int run(struct profiling *profiling, struct err *err)
{
    const struct device_config *device = profiling->config->device;
    struct thread *thread = NULL;
    int rc =
        thread_start(device->name, device->cores, device->n_cores, device->n_threads, &thread, err);
    if (rc != 0)
        return rc;
    thread_submit(thread, run_task, profiling);
    thread_stop(thread);
    if (profiling->err.code == 0)
        return 0;
    *err = profiling->err;
    return err_context(err, "measuring the layers on %s", device->name);
}

int profile_layers(const struct profile_config *config, struct balance_layer *layers,
                   struct err *err)
{
    struct profiling profiling = {.config = config,
                                  .part = STEP_FIRST,
                                  .take = take_layers,
                                  .taker = layers,
                                  .err = ERR_INIT};
    return run(&profiling, err);
}

int profile_nodes(const struct profile_config *config, struct profile **ret_profile,
                  struct err *err)
{
    struct arena *arena = arena_new();
    struct profile *profile = arena != NULL ? arena_alloc(arena, sizeof *profile) : NULL;
    if (profile == NULL) {
        arena_free(arena);
        return err_set(err, ERR_NOMEM, "out of memory for the profile");
    }
    profile->arena = arena;
    struct profiling profiling = {.config = config,
                                  .part = STEP_WHOLE,
                                  .least_seconds = 0.5,
                                  .take = take_nodes,
                                  .taker = profile,
                                  .err = ERR_INIT};
    int rc = run(&profiling, err);
    if (rc == 0)
        *ret_profile = profile;
    else
        profile_free(profile);
    return rc;
}

void profile_free(struct profile *profile)
{
    if (profile != NULL)
        arena_free(profile->arena);
}
