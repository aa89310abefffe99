/* plan_stages.c: see plan_stages.h. */
#include "engine/worker/plan_stages.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/parallel/estimate.h"
#include "proto/json.h"

static int estimate(const struct model *model, struct stages_plan *plan, struct err *err)
{
    const struct job *job = plan->setup->job;
    const struct placement *placement = &plan->placement;
    size_t first[LIMIT_DEVICES];
    int devices[LIMIT_DEVICES];
    for (int s = 0; s < placement->split.n_stages; s++) {
        first[s] = (size_t)placement->split.first_layer[s];
        devices[s] = placement_workers(placement, s);
    }
    const struct estimate_stages stages = {placement->split.n_stages, first, devices};
    struct microbatch_rule rule = {job->parallel.split_size, job->parallel.microbatches};
    struct microbatch_rows batch = {0, job->train.batch_size};
    struct microbatch_rows rows = microbatch_chunk(batch, placement->n_pipelines, 0);
    return estimate_timetable(model, &(struct estimate_source){0}, &stages, &rule, rows.n,
                              job_trains(job), &plan->table, err);
}

int stages_plan_make(const struct setup *setup, const struct model *model,
                     struct stages_plan *ret_plan, struct err *err)
{
    *ret_plan = (struct stages_plan){.setup = setup};
    int rc = placement_build(setup->job, setup->n_devices, &ret_plan->placement, err);
    if (rc == 0)
        rc = estimate(model, ret_plan, err);
    if (rc != 0)
        return rc;
    ret_plan->grid = timetable_grid(ret_plan->table);
    return ret_plan->grid != NULL ? 0 : err_set(err, ERR_NOMEM, "out of memory");
}

void stages_plan_done(struct stages_plan *plan)
{
    timetable_free(plan->table);
    free(plan->grid);
    *plan = (struct stages_plan){0};
}

static const char *begin_of(const struct stages_plan *plan, int stage)
{
    return plan->setup->job->model.layers[plan->placement.split.first_layer[stage]].name;
}

/* Of all pipelines. */
static json_t *stage_devices(const struct stages_plan *plan, int stage)
{
    json_t *list = json_array();
    for (int d = 0; list != NULL && d < plan->setup->n_devices; d++)
        if (placement_worker(&plan->placement, d).stage == stage)
            list = json_list_append(list, json_string(plan->setup->devices[d].name));
    return list;
}

json_t *stages_plan_devices(const struct stages_plan *plan, int layer)
{
    return stage_devices(plan, split_stage(&plan->placement.split, layer));
}

static json_t *stages_json(const struct stages_plan *plan)
{
    json_t *list = json_array();
    for (int s = 0; list != NULL && s < plan->table->config.stages; s++) {
        const struct timetable_stage *stage = &plan->table->stages[s];
        list = json_list_append(list, json_pack("{s:s, s:o, s:i, s:f}", "begin", begin_of(plan, s),
                                                "devices", stage_devices(plan, s), "slots",
                                                stage->slots, "busy_seconds", stage->busy));
    }
    return list;
}

json_t *stages_plan_json(const struct stages_plan *plan)
{
    const struct timetable *table = plan->table;
    return json_pack("{s:s, s:i, s:i, s:f, s:f, s:o, s:s}", "schedule",
                     pipeline_schedule_name(table->config.schedule), "replicas",
                     plan->placement.n_pipelines, "microbatches", table->config.microbatches,
                     "step_seconds", table->seconds, "bubble", table->bubble, "stages",
                     stages_json(plan), "grid", plan->grid);
}

void stages_plan_print(const struct stages_plan *plan)
{
    const struct timetable *table = plan->table;
    printf("\n%-8s %-24s %6s %14s\n", "stage", "begins with", "slots", "busy (s)");
    for (int s = 0; s < table->config.stages; s++)
        printf("%-8d %-24s %6d %14.4g\n", s, begin_of(plan, s), table->stages[s].slots,
               table->stages[s].busy);
    printf("\n%s, %d micro-batches, about %.4g s a step (estimated), bubble %.1f %%\n\n%s",
           pipeline_schedule_name(table->config.schedule), table->config.microbatches,
           table->seconds, 100 * table->bubble, plan->grid);
}
