/* stages.c: strategy.h by stages: each device has some of the layers, micro-batches flow through
 * them; pipeline.h says who does what, stages_run.c does it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/graph/op.h"
#include "engine/parallel/rows.h"
#include "engine/parallel/stages.h"

static void abort_all(void *context)
{
    struct stages *stages = context;
    progress_abort(stages->progress);
    if (stages->all != NULL)
        comm_abort(stages->all);
    for (int s = 0; s < stages->pipeline.placement.split.n_stages; s++)
        if (stages->replicas[s] != NULL)
            comm_abort(stages->replicas[s]);
}

static int place_error(void *context, int device, struct err *err)
{
    const struct stages *stages = context;
    const struct placement *placement = &stages->pipeline.placement;
    struct worker worker = placement_worker(placement, device);
    const char *name = stages->config.devices[device].name;
    if (placement->n_pipelines == 1)
        return err_context(err, "stage %d on %s", worker.stage, name);
    return err_context(err, "pipeline %d, stage %d on %s", worker.pipeline, worker.stage, name);
}

static int on_devices(struct stages *stages, crew_task task, struct err *err)
{
    return crew_run(stages->crew, 0, stages->config.n_devices, task, err);
}

static int plan_task(void *context, int device, struct err *err)
{
    struct stages *stages = context;
    return station_plan(&stages->runners[device].station, err);
}

static struct comm *replicas_of(const struct stages *stages, int device)
{
    return stages->replicas[placement_worker(&stages->pipeline.placement, device).stage];
}

static int open_task(void *context, int device, struct err *err)
{
    struct stages *stages = context;
    struct runner *runner = &stages->runners[device];
    struct comm *replicas = replicas_of(stages, device);
    int rc = station_open(&runner->station, err);
    if (rc != 0 || replicas == NULL)
        return rc;
    int rank = runner->replicas->rank;
    rc = comm_join(replicas, rank, stages->config.backend, runner->station.device, err);
    runner->replicas = comm_collective(replicas, rank);
    return rc;
}

static int close_task(void *context, int device, struct err *err)
{
    struct stages *stages = context;
    struct comm *replicas = replicas_of(stages, device);
    (void)err;
    if (replicas != NULL)
        comm_leave(replicas, stages->runners[device].replicas->rank);
    station_close(&stages->runners[device].station);
    return 0;
}

static bool owns(const struct stages *stages, int device)
{
    const struct pipeline *pipeline = &stages->pipeline;
    return split_owns(stages->config.model, &pipeline->placement.split,
                      placement_worker(&pipeline->placement, device).stage, stages->variable);
}

static int read_task(void *context, int device, struct err *err)
{
    struct stages *stages = context;
    return station_read(&stages->runners[device].station, stages->variable, stages->read_to, err);
}

static int write_task(void *context, int device, struct err *err)
{
    struct stages *stages = context;
    if (!owns(stages, device))
        return 0;
    return station_write(&stages->runners[device].station, stages->variable, stages->write_from,
                         err);
}

static int sum_over_stages(struct collective *self, double *value, struct err *err)
{
    struct stage_sum *sum = (struct stage_sum *)self;
    if (!sum->brings)
        *value = 0;
    return sum->all->sum(sum->all, value, err);
}

static int open_host(struct stages *stages, struct err *err)
{
    const struct strategy_config *config = &stages->config;
    const struct placement *placement = &stages->pipeline.placement;
    int rc = pipeline_build(config, &stages->pipeline, err);
    if (rc == 0)
        rc = host_room_open(config, &stages->room, err);
    if (rc == 0)
        rc = observed_open(config, &stages->observed, err);
    if (rc == 0)
        rc = progress_new(stages_counters(config->n_devices), &stages->progress, err);
    if (rc == 0 && placement->split.n_stages > 1)
        rc = comm_new(config->n_devices, &stages->all, err);
    for (int s = 0; rc == 0 && s < placement->split.n_stages; s++) {
        int n = placement->n_pipelines * placement_workers(placement, s);
        if (n > 1)
            rc = comm_new(n, &stages->replicas[s], err);
    }
    return rc;
}

static void prepare_runner(struct stages *stages, int device)
{
    const struct placement *placement = &stages->pipeline.placement;
    struct worker worker = placement_worker(placement, device);
    struct runner *runner = &stages->runners[device];
    int rank = worker.pipeline * placement_workers(placement, worker.stage) + worker.part;
    runner->stages = stages;
    runner->station = (struct station){
        .pipeline = &stages->pipeline,
        .device_index = device,
        .worker = worker,
    };
    if (stages->replicas[worker.stage] != NULL)
        runner->replicas = comm_collective(stages->replicas[worker.stage], rank);
    if (stages->all == NULL)
        return;
    runner->sum = (struct stage_sum){
        .collective = {.rank = device, .size = stages->config.n_devices, .sum = sum_over_stages},
        .all = comm_collective(stages->all, device),
        .brings = rank == 0,
    };
}

/* All plans, before any device is given memory. */
static int open_devices(struct stages *stages, struct err *err)
{
    struct strategy_memory memory[LIMIT_DEVICES];
    int rc = on_devices(stages, plan_task, err);
    for (int d = 0; rc == 0 && d < stages->config.n_devices; d++)
        memory[d] = stages->runners[d].station.sizes;
    if (rc == 0)
        rc = strategy_check_memory(&stages->config, memory, err);
    return rc == 0 ? on_devices(stages, open_task, err) : rc;
}

static void stages_close(struct strategy *strategy)
{
    struct stages *stages = (struct stages *)strategy;
    if (stages->crew != NULL)
        on_devices(stages, close_task, &(struct err)ERR_INIT);
    crew_stop(stages->crew);
    for (int s = 0; s < LIMIT_DEVICES; s++)
        comm_free(stages->replicas[s]);
    comm_free(stages->all);
    progress_free(stages->progress);
    pipeline_done(&stages->pipeline);
    host_room_done(&stages->room);
    observed_done(&stages->observed);
    free(stages);
}

static int stages_open(const struct strategy_config *config, struct strategy **ret_strategy,
                       struct err *err)
{
    assert(config->n_devices >= 1 && config->n_devices <= LIMIT_DEVICES);
    struct stages *stages =
        calloc(1, sizeof *stages + (size_t)config->n_devices * sizeof stages->runners[0]);
    if (stages == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    stages->strategy.def = &strategy_stages;
    stages->config = *config;
    const struct crew_config crew = {
        .devices = config->devices,
        .n_devices = config->n_devices,
        .abort = abort_all,
        .place = place_error,
        .context = stages,
        .patience = stages->config.patience,
        .hang = stages->config.hang,
        .hang_context = stages->config.hang_context,
    };
    int rc = open_host(stages, err);
    for (int d = 0; rc == 0 && d < config->n_devices; d++)
        prepare_runner(stages, d);
    if (rc == 0)
        rc = crew_start(&crew, &stages->crew, err);
    if (rc == 0)
        rc = open_devices(stages, err);
    if (rc != 0)
        stages_close(&stages->strategy);
    else
        *ret_strategy = &stages->strategy;
    return rc;
}

static int run_batch(struct stages *stages, const struct batch *batch, bool training,
                     enum step_part part, const struct step *step, struct err *err)
{
    stages->batch = *batch;
    stages->training = training;
    stages->part = part;
    stages->step = *step;
    stages->step.record &= step_part_ends(part) && stages->config.model->n_recorded > 0;
    progress_reset(stages->progress);
    return on_devices(stages, stages_run, err);
}

static void gather_times(const struct stages *stages, int device, struct strategy_times *ret_times)
{
    struct comm *replicas = replicas_of(stages, device);
    struct comm_times of[2] = {{0}};
    if (replicas != NULL)
        of[0] = comm_times(replicas, stages->runners[device].replicas->rank);
    if (stages->all != NULL)
        of[1] = comm_times(stages->all, device);
    *ret_times = stages->runners[device].times;
    ret_times->waited += of[0].waited + of[1].waited;
    ret_times->reduced = of[0].summed + of[1].summed;
}

/* A pipeline is a replica: its loss is that of its rows. */
static void gather(const struct stages *stages, struct strategy_result *result)
{
    const struct placement *placement = &stages->pipeline.placement;
    const struct model *model = stages->config.model;
    int last = placement->split.n_stages - 1;
    double sum = 0;
    *result = (struct strategy_result){.n_replicas = placement->n_pipelines};
    for (int p = 0; p < placement->n_pipelines; p++) {
        struct microbatch_rows mine = pipeline_rows(&stages->pipeline, stages->batch.n, p);
        struct batch rows = rows_of(model, &stages->batch, mine.first, mine.n);
        struct replica_result *replica = &result->replicas[p];
        replica->samples = mine.n;
        replica->loss_divisor = graph_loss_divisor(model, rows.targets, mine.n);
        for (int k = 0; k < placement_workers(placement, last); k++)
            replica->loss_sum +=
                stages->runners[placement_device(placement, (struct worker){p, last, k})].loss_sum;
        sum += replica->loss_sum;
    }
    result->loss = sum / stages->step.loss_divisor;
    for (int d = 0; d < stages->config.n_devices; d++)
        gather_times(stages, d, &result->times[d]);
}

/* Whether a stage has several devices, whose buffers part as they train. */
static bool shares_stages(const struct stages *stages)
{
    for (int s = 0; s < stages->pipeline.placement.split.n_stages; s++)
        if (stages->replicas[s] != NULL)
            return true;
    return false;
}

static int stages_train(struct strategy *strategy, const struct batch *batch, enum step_part part,
                        const struct step *step, struct strategy_result *ret_result,
                        struct err *err)
{
    struct stages *stages = (struct stages *)strategy;
    observed_clear(&stages->observed);
    int rc = run_batch(stages, batch, true, part, step, err);
    if (rc != 0)
        return rc;
    stages->buffers_differ = shares_stages(stages);
    gather(stages, ret_result);
    observed_show(&stages->observed, ret_result);
    return 0;
}

static int stages_read(struct strategy *strategy, int variable, void *to, struct err *err)
{
    struct stages *stages = (struct stages *)strategy;
    const struct placement *placement = &stages->pipeline.placement;
    int layer = model_variable_layer(stages->config.model, variable);
    struct worker first = {.stage = split_stage(&placement->split, layer)};
    stages->variable = variable;
    stages->read_to = to;
    return crew_run(stages->crew, placement_device(placement, first), 1, read_task, err);
}

static int stages_write(struct strategy *strategy, int variable, const void *from, struct err *err)
{
    struct stages *stages = (struct stages *)strategy;
    stages->variable = variable;
    stages->write_from = from;
    return on_devices(stages, write_task, err);
}

static int stages_evaluate(struct strategy *strategy, const struct batch *batch,
                           const struct step *step, struct strategy_result *ret_result,
                           struct err *err)
{
    struct stages *stages = (struct stages *)strategy;
    const struct model *model = stages->config.model;
    int rc = stages->buffers_differ
                 ? strategy_share_buffers(strategy, model, stages->room.buffer, err)
                 : 0;
    if (rc != 0)
        return rc;
    stages->buffers_differ = false;
    rc = run_batch(stages, batch, false, STEP_WHOLE, step, err);
    if (rc != 0)
        return rc;
    gather(stages, ret_result);
    host_room_show(&stages->room, model, ret_result);
    return 0;
}

static int stages_plan(const struct strategy_config *config, struct strategy_memory *ret_memory,
                       double *ret_flops, struct err *err)
{
    struct strategy_memory memory[LIMIT_DEVICES];
    struct pipeline pipeline;
    int rc = pipeline_build(config, &pipeline, err);
    for (int d = 0; rc == 0 && d < config->n_devices; d++) {
        struct station station = {
            .pipeline = &pipeline,
            .device_index = d,
            .worker = placement_worker(&pipeline.placement, d),
        };
        rc = station_plan(&station, err);
        memory[d] = station.sizes;
        station_close(&station);
    }
    if (rc == 0) {
        memcpy(ret_memory, memory, (size_t)config->n_devices * sizeof memory[0]);
        *ret_flops = pipeline_flops(&pipeline);
    }
    pipeline_done(&pipeline);
    return rc;
}

const struct strategy_def strategy_stages = {
    .plan = stages_plan,
    .open = stages_open,
    .close = stages_close,
    .train = stages_train,
    .evaluate = stages_evaluate,
    .read = stages_read,
    .write = stages_write,
};
