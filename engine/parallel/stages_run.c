/* stages_run.c: a device's part of a batch: its stage's list, section by section.
 *
 * Before a section its values are pulled: whoever made them has counted it as made, so their rows
 * are copied out of his outbox; then the section is counted as pulled. Before a section overwrites
 * an outbox, all its readers have pulled what lay there. An update begins when every device of the
 * job has run its whole list, so that a failure before changes no parameter.
 *
 * All counters are of one thread each, and every wait is for a section that stands earlier in the
 * step, so no circle of waits exists.
 */
#include <assert.h>

#include "engine/base/clock.h"
#include "engine/parallel/results.h"
#include "engine/parallel/rows.h"
#include "engine/parallel/stages.h"

/* What flows between stages, and by whose count. */
enum count { COUNT_MADE, COUNT_PULLED, COUNTS };
enum {
    FLOWS = SECTION_BACKWARD + 1, /* values forward, gradients backward */
    COUNTERS = FLOWS * COUNTS + 1 /* of a device; the last: its list is done */
};

int stages_counters(int n_devices)
{
    return n_devices * COUNTERS;
}

static int counter(int device, enum section flow, enum count count)
{
    return device * COUNTERS + (int)flow * COUNTS + (int)count;
}

static int counter_done(int device)
{
    return device * COUNTERS + COUNTERS - 1;
}

static int source_stage(const struct crossing *crossing, enum section flow)
{
    return flow == SECTION_FORWARD ? crossing->from : crossing->to;
}

static int target_stage(const struct crossing *crossing, enum section flow)
{
    return flow == SECTION_FORWARD ? crossing->to : crossing->from;
}

static bool flows(const struct crossing *crossing, enum section flow)
{
    return flow == SECTION_FORWARD || crossing->gradient;
}

static const struct plan_carried *find_carried(const struct carried *list, int n, int layer,
                                               int stage, const struct plan_carried *plan)
{
    int i = 0;
    while (i < n && (list[i].layer != layer || list[i].stage != stage))
        i++;
    assert(i < n);
    return &plan[i];
}

static const struct plan_carried *received(const struct plan *plan, const struct crossing *crossing)
{
    const struct graph *graph = plan->graph;
    return find_carried(graph->received, graph->n_received, crossing->layer, crossing->from,
                        plan->received);
}

static const struct plan_carried *sent(const struct plan *plan, const struct crossing *crossing)
{
    const struct graph *graph = plan->graph;
    return find_carried(graph->sent, graph->n_sent, crossing->layer, crossing->to, plan->sent);
}

/* Where it lies at the source, and where the target wants it. */
static const struct plan_buffer *source_buffer(const struct plan *plan,
                                               const struct crossing *crossing, enum section flow)
{
    return flow == SECTION_FORWARD ? &sent(plan, crossing)->value : &received(plan, crossing)->grad;
}

static const struct plan_buffer *target_buffer(const struct plan *plan,
                                               const struct crossing *crossing, enum section flow)
{
    return flow == SECTION_FORWARD ? &received(plan, crossing)->value : &sent(plan, crossing)->grad;
}

static struct microbatch_rows rows_at(const struct runner *runner, int i)
{
    const struct stages *stages = runner->stages;
    return pipeline_worker_rows(&stages->pipeline, stages->batch.n, runner->station.worker, i);
}

/* Of micro-batch i. */
static const struct compiled *compiled_at(const struct runner *runner, int i)
{
    const struct stages *stages = runner->stages;
    struct pipeline_key key =
        pipeline_key(&stages->pipeline, stages->batch.n, runner->station.worker, i,
                     stages->training, stages->part);
    return &runner->station.compiled.items[pipeline_graph(&stages->pipeline, &key)];
}

/* The device of the same pipeline that has this part of a stage. */
static const struct runner *neighbour(const struct runner *runner, int stage, int part)
{
    const struct stages *stages = runner->stages;
    struct worker worker = {runner->station.worker.pipeline, stage, part};
    return &stages->runners[placement_device(&stages->pipeline.placement, worker)];
}

static int wait_for(struct runner *runner, int counter, int least, struct err *err)
{
    double begun = clock_seconds();
    int rc = progress_wait(runner->stages->progress, counter, least, err);
    runner->times.waited += clock_seconds() - begun;
    return rc;
}

/* Copies the rows that both have, when they have been made. */
static int pull_from(struct runner *runner, const struct runner *source,
                     const struct crossing *crossing, enum section flow, int i, struct err *err)
{
    struct stages *stages = runner->stages;
    struct microbatch_rows mine = rows_at(runner, i), its = rows_at(source, i);
    struct microbatch_rows both = microbatch_overlap(mine, its);
    if (both.n == 0)
        return 0;
    int rc = wait_for(runner, counter(source->station.device_index, flow, COUNT_MADE), i + 1, err);
    if (rc != 0)
        return rc;
    const struct plan *plan = compiled_at(runner, i)->plan,
                      *its_plan = compiled_at(source, i)->plan;
    char *to = station_buffer(&runner->station, target_buffer(plan, crossing, flow), i);
    const char *from = station_buffer(&source->station, source_buffer(its_plan, crossing, flow), i);
    return stages->config.backend->copy(
        runner->station.device, to + (size_t)(both.first - mine.first) * crossing->bytes,
        source->station.device, from + (size_t)(both.first - its.first) * crossing->bytes,
        (size_t)both.n * crossing->bytes, err);
}

static int pull(struct runner *runner, enum section flow, int i, struct err *err)
{
    const struct pipeline *pipeline = &runner->stages->pipeline;
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < pipeline->crossings.n; k++) {
        const struct crossing *crossing = &pipeline->crossings.list[k];
        int source = source_stage(crossing, flow);
        if (target_stage(crossing, flow) != runner->station.worker.stage || !flows(crossing, flow))
            continue;
        for (int p = 0; rc == 0 && p < placement_workers(&pipeline->placement, source); p++)
            rc = pull_from(runner, neighbour(runner, source, p), crossing, flow, i, err);
    }
    return rc;
}

/* Waits until every reader of the outbox has pulled what lies there. */
static int wait_for_outbox(struct runner *runner, enum section flow, int i, struct err *err)
{
    const struct pipeline *pipeline = &runner->stages->pipeline;
    int least = i + 1 - runner->station.sizes.outboxes, rc = 0;
    for (size_t k = 0; rc == 0 && k < pipeline->crossings.n; k++) {
        const struct crossing *crossing = &pipeline->crossings.list[k];
        int target = target_stage(crossing, flow);
        if (source_stage(crossing, flow) != runner->station.worker.stage || !flows(crossing, flow))
            continue;
        for (int p = 0; rc == 0 && p < placement_workers(&pipeline->placement, target); p++) {
            int device = neighbour(runner, target, p)->station.device_index;
            rc = wait_for(runner, counter(device, flow, COUNT_PULLED), least, err);
        }
    }
    return rc;
}

/* The micro-batch's rows of the batch, where this stage reads them. */
static int write_data(struct runner *runner, int i, struct err *err)
{
    const struct stages *stages = runner->stages;
    const struct model *model = stages->config.model;
    const struct backend *backend = stages->config.backend;
    const struct station *station = &runner->station;
    const struct plan *plan = compiled_at(runner, i)->plan;
    struct microbatch_rows mine = rows_at(runner, i);
    struct batch rows = rows_of(model, &stages->batch, mine.first, mine.n);
    int rc = 0;
    for (int k = 0; rc == 0 && k < model->n_inputs; k++)
        if (plan->data[k].space != SPACE_NONE)
            rc = backend->write(station->device, station_buffer(station, &plan->data[k], i),
                                rows.inputs[k], rows_data_bytes(model, k, mine.n), err);
    if (rc == 0 && plan->target.space != SPACE_NONE)
        rc = backend->write(station->device, station_buffer(station, &plan->target, i),
                            rows.targets, rows_target_bytes(model, mine.n), err);
    return rc;
}

/* What a plan that has run in these bases left there. */
static struct results results_of(const struct runner *runner, const struct plan *plan,
                                 const struct station_bases *bases)
{
    return (struct results){runner->stages->config.backend, runner->station.device, plan,
                            bases->at};
}

/* What the last stage makes for the host. */
static int read_results(struct runner *runner, int i, struct err *err)
{
    const struct stages *stages = runner->stages;
    const struct station_bases bases = station_bases(&runner->station, i);
    const struct results results = results_of(runner, compiled_at(runner, i)->plan, &bases);
    struct microbatch_rows mine = rows_at(runner, i);
    struct host_samples to = host_room_samples(&stages->room, stages->config.model, mine.first);
    double loss = 0;
    int rc = results_loss(&results, mine.n, stages->training ? NULL : to.losses, &loss, err);
    runner->loss_sum += loss;
    return rc == 0 && !stages->training ? results_samples(&results, mine.n, &to, err) : rc;
}

/* What is recorded of a plan that is not cut, or was made in this section. */
static int observe(struct runner *runner, const struct results *results, enum section section,
                   struct err *err)
{
    static const unsigned made_in[SECTION_COUNT] = {
        [SECTION_FORWARD] =
            1u << RECORDED_OUTPUT | 1u << RECORDED_PARAMETER | 1u << RECORDED_PARAMETER_GRAD,
        [SECTION_BACKWARD] = 1u << RECORDED_OUTPUT_GRAD,
    };
    struct stages *stages = runner->stages;
    if (!stages->step.record)
        return 0;
    return results_observe(results, made_in[section], runner->station.device_index,
                           &stages->observed, err);
}

static int run_section(struct runner *runner, enum section section, int i, struct err *err)
{
    const struct compiled *compiled = compiled_at(runner, i);
    const struct station_bases bases = station_bases(&runner->station, i);
    const struct results results = results_of(runner, compiled->plan, &bases);
    struct step step = runner->stages->step;
    const struct run run = {.base = bases.at, .step = &step};
    step.first_sample += rows_at(runner, i).first;
    double begun = clock_seconds();
    int rc = executor_run_section(compiled->executor, section, &run, err);
    runner->times.sections[section] += clock_seconds() - begun;
    return rc != 0 ? rc : observe(runner, &results, section, err);
}

/* A graph without rows. */
static int run_whole(struct runner *runner, const struct compiled *compiled, struct err *err)
{
    struct stages *stages = runner->stages;
    const struct station_bases bases = station_bases(&runner->station, 0);
    const struct results results = results_of(runner, compiled->plan, &bases);
    const struct run run = {
        .base = bases.at,
        .step = &stages->step,
        .collective = runner->replicas,
        .stages = stages->all != NULL ? &runner->sum.collective : NULL,
    };
    int rc = executor_run(compiled->executor, &run, err);
    return rc != 0 ? rc : observe(runner, &results, SECTION_FORWARD, err);
}

/* Micro-batch i, of which this worker has no rows: what is left of it. */
static int run_rest(struct runner *runner, int i, struct err *err)
{
    return runner->stages->training ? run_whole(runner, compiled_at(runner, i), err) : 0;
}

/* What ends a window. */
static int run_end(struct runner *runner, enum step_part part, struct err *err)
{
    struct pipeline_key key = {runner->station.worker.stage, 0, true, part, false};
    size_t i = pipeline_graph(&runner->stages->pipeline, &key);
    return run_whole(runner, &runner->station.compiled.items[i], err);
}

/* A forward or backward section with what flows to and from it. */
static int run_flow(struct runner *runner, enum section flow, int i, struct err *err)
{
    struct progress *progress = runner->stages->progress;
    int device = runner->station.device_index, rc = 0;
    bool any = rows_at(runner, i).n > 0;
    if (any)
        rc = pull(runner, flow, i, err);
    if (rc != 0)
        return rc;
    progress_count(progress, counter(device, flow, COUNT_PULLED));
    if (any && flow == SECTION_FORWARD)
        rc = write_data(runner, i, err);
    if (any && rc == 0)
        rc = wait_for_outbox(runner, flow, i, err);
    if (any && rc == 0)
        rc = run_section(runner, flow, i, err);
    if (!any && flow == SECTION_FORWARD)
        rc = run_rest(runner, i, err);
    if (any && rc == 0 && flow == SECTION_FORWARD)
        rc = read_results(runner, i, err);
    if (rc == 0)
        progress_count(progress, counter(device, flow, COUNT_MADE));
    return rc;
}

static int run_entry(struct runner *runner, const struct timetable_entry *entry, struct err *err)
{
    if (entry->kind != SECTION_WEIGHTS)
        return run_flow(runner, entry->kind, entry->microbatch, err);
    return rows_at(runner, entry->microbatch).n == 0
               ? 0
               : run_section(runner, SECTION_WEIGHTS, entry->microbatch, err);
}

static int run_list(struct runner *runner, int microbatches, struct err *err)
{
    const struct stages *stages = runner->stages;
    int stage = runner->station.worker.stage, rc = 0;
    if (microbatches == 0)
        return 0;
    const struct timetable_stage *list =
        &pipeline_timetable(&stages->pipeline, microbatches, stages->training)->stages[stage];
    for (size_t k = 0; rc == 0 && k < list->n; k++)
        rc = run_entry(runner, &list->entries[k], err);
    return rc;
}

/* All micro-batches, then those that only the first pipeline has. */
static int run_microbatches(struct runner *runner, struct err *err)
{
    const struct stages *stages = runner->stages;
    int64_t n = stages->batch.n;
    int own = pipeline_microbatches(&stages->pipeline, n, runner->station.worker.pipeline);
    int first = pipeline_microbatches(&stages->pipeline, n, 0);
    int rc = run_list(runner, own, err);
    for (int i = own; rc == 0 && i < first; i++)
        rc = run_rest(runner, i, err);
    return rc;
}

static int wait_for_all(struct runner *runner, struct err *err)
{
    const struct stages *stages = runner->stages;
    int rc = 0;
    for (int d = 0; rc == 0 && d < stages->config.n_devices; d++)
        rc = wait_for(runner, counter_done(d), 1, err);
    return rc;
}

int stages_run(void *context, int device, struct err *err)
{
    struct stages *stages = context;
    struct runner *runner = &stages->runners[device];
    runner->loss_sum = 0;
    runner->times = (struct strategy_times){0};
    int rc = run_microbatches(runner, err);
    if (rc == 0 && stages->step.record && rows_at(runner, 0).n > 0)
        rc = run_end(runner, STEP_RECORD, err);
    if (rc != 0)
        return rc;
    progress_count(stages->progress, counter_done(device));
    if (!stages->training || !step_part_ends(stages->part))
        return 0;
    rc = wait_for_all(runner, err);
    return rc != 0 ? rc : run_end(runner, STEP_END, err);
}
