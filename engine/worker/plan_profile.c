/* plan_profile.c: see plan_profile.h. */
#include "engine/worker/plan_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/parallel/chunk.h"
#include "engine/parallel/microbatch.h"
#include "proto/json.h"

static const char *const phases[] = {
    [PHASE_FORWARD] = "forward",       [PHASE_RECOMPUTE] = "recompute",
    [PHASE_INPUT_GRAD] = "input grad", [PHASE_WEIGHT_GRAD] = "weight grad",
    [PHASE_REDUCE] = "reduce",         [PHASE_UPDATE] = "update",
};

static int64_t chunk_rows(const struct job *job, int n_devices)
{
    const struct job_parallel *parallel = &job->parallel;
    struct microbatch_rows batch = {0, job->train.batch_size};
    if (parallel->mode != PARALLEL_STAGES)
        return microbatch_chunk(batch, parallel->shards > 0 ? parallel->shards : n_devices, 0).n;
    struct microbatch_rule rule = {parallel->split_size, parallel->microbatches};
    return microbatch_cut(&rule, microbatch_chunk(batch, parallel->replicas, 0), 0).n;
}

int plan_profile_make(const struct setup *setup, const struct model *model,
                      struct profile **ret_profile, struct err *err)
{
    const struct profile_config config = {
        .backend = setup->backend,
        .device = &setup->devices[0],
        .model = model,
        .rows = chunk_rows(setup->job, setup->n_devices),
    };
    if (!job_trains(setup->job))
        return err_at(err, ERR_JOB_INVALID, "/train/mode", "only a job that trains is profiled");
    return profile_nodes(&config, ret_profile, err);
}

static json_t *node_json(const struct profile_node *node)
{
    return json_pack("{s:s, s:s, s:b, s:s, s:s, s:f, s:f, s:f, s:f}", "op", node->op, "name",
                     node->name, "layer", node->layer, "phase", phases[node->phase],
                     "implementation", node->impl, "seconds", node->seconds, "flops", node->flops,
                     "bytes", node->bytes, "floor_seconds", node->floor);
}

json_t *plan_profile_json(const struct setup *setup, const struct profile *profile)
{
    json_t *nodes = json_array();
    for (size_t i = 0; nodes != NULL && i < profile->n_nodes; i++)
        nodes = json_list_append(nodes, node_json(&profile->nodes[i]));
    return json_pack("{s:s, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:o}", "device",
                     setup->devices[0].name, "threads", setup->devices[0].n_threads, "samples",
                     (json_int_t)chunk_rows(setup->job, setup->n_devices), "flops_per_second",
                     profile->rates.flops, "low_flops_per_second", profile->low_rates.flops,
                     "bytes_per_second", profile->rates.bytes, "seconds", profile->seconds,
                     "floor_seconds", profile->floor, "nodes", nodes);
}

/* Per second, or a share of the time; 0 of a node that took less than the clock tells. */
static double rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds : 0;
}

static int slower_first(const void *a, const void *b)
{
    double x = (*(const struct profile_node *const *)a)->seconds;
    double y = (*(const struct profile_node *const *)b)->seconds;
    return (x < y) - (x > y);
}

void plan_profile_print(const struct profile *profile)
{
    const struct profile_node **sorted = calloc(profile->n_nodes + 1, sizeof *sorted);
    if (sorted == NULL)
        return;
    for (size_t i = 0; i < profile->n_nodes; i++)
        sorted[i] = &profile->nodes[i];
    qsort(sorted, profile->n_nodes, sizeof *sorted, slower_first);
    printf("\n%-26s %-24s %-12s %10s %7s %9s %8s %8s\n", "op", "layer", "phase", "ms", "share",
           "GFLOP/s", "GB/s", "of floor");
    for (size_t i = 0; i < profile->n_nodes; i++) {
        const struct profile_node *node = sorted[i];
        printf("%-26s %-24s %-12s %10.4f %6.1f%% %9.1f %8.2f %8.2f\n", node->op, node->name,
               phases[node->phase], node->seconds * 1e3,
               100 * rate(node->seconds, profile->seconds), rate(node->flops, node->seconds) / 1e9,
               rate(node->bytes, node->seconds) / 1e9, rate(node->floor, node->seconds));
    }
    printf("\n%.4g ms, %.2f of the floor (%.4g GFLOP/s, in BF16 %.4g; %.4g GB/s)\n",
           profile->seconds * 1e3, rate(profile->floor, profile->seconds),
           profile->rates.flops / 1e9, profile->low_rates.flops / 1e9, profile->rates.bytes / 1e9);
    free(sorted);
}

/* One event, of the duration that was measured, `begin` after the step's. Microseconds. */
static json_t *event_json(const struct profile_node *node, double begin)
{
    char title[160];
    snprintf(title, sizeof title, "%s %s", node->name, node->op);
    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:{s:s, s:f, s:f, s:f}}", "name", title,
                     "cat", phases[node->phase], "ph", "X", "ts", begin * 1e6, "dur",
                     node->seconds * 1e6, "pid", 1, "tid", 1, "args", "implementation", node->impl,
                     "GFLOP/s", rate(node->flops, node->seconds) / 1e9, "GB/s",
                     rate(node->bytes, node->seconds) / 1e9, "of floor",
                     rate(node->floor, node->seconds));
}

static json_t *trace_json(const struct setup *setup, const struct profile *profile)
{
    json_t *events = json_array();
    double begin = 0;
    events = json_list_append(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name",
                                                "thread_name", "ph", "M", "pid", 1, "tid", 1,
                                                "args", "name", setup->devices[0].name));
    for (size_t i = 0; i < profile->n_nodes; i++) {
        events = json_list_append(events, event_json(&profile->nodes[i], begin));
        begin += profile->nodes[i].seconds;
    }
    return json_pack("{s:o, s:s}", "traceEvents", events, "displayTimeUnit", "ms");
}

int plan_profile_trace(const struct setup *setup, const struct profile *profile, const char *path,
                       struct err *err)
{
    json_t *trace = trace_json(setup, profile);
    char *line = trace != NULL ? json_line(trace) : NULL;
    json_decref(trace);
    if (line == NULL)
        return err_set(err, ERR_NOMEM, "out of memory for the trace");
    FILE *file = fopen(path, "w");
    int rc = file == NULL || fputs(line, file) < 0 ? err_errno(err, errno, "%s", path) : 0;
    if (file != NULL && fclose(file) != 0 && rc == 0)
        rc = err_errno(err, errno, "%s", path);
    free(line);
    return rc;
}
