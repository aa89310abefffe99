/* tune.c: see tune.h. Each way to run the job is opened, measured and closed again, one after
 * another; tune.json is written when all have been. */
#include "engine/train/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/parallel/chunk.h"
#include "engine/train/measure.h"
#include "engine/train/output.h"
#include "proto/json.h"

/* As the model-parallel tutorial of PyTorch measures. */
enum { REPEATS = 10, BATCHES = 3, STEPS = 1 + REPEATS * BATCHES };
static const int64_t split_sizes[] = {1, 3, 5, 8, 10, 12, 20, 40, 60};

enum { SPLIT_SIZES = sizeof split_sizes / sizeof *split_sizes, WAYS = 2 + SPLIT_SIZES };

struct way { /* to run the job */
    const char *name;
    enum parallel_mode mode;
    enum pipeline_schedule schedule;
    int64_t split_size; /* 0: the batch is whole */
    double mean, deviation;
    double waiting; /* the part of all devices' time in which they wait for others */
    bool measured;  /* else it cannot run: a BatchNorm would have one value a channel */
};

struct tuning {
    const struct trainer_config *config;
    struct output output;
    struct way ways[WAYS];
    size_t n_ways;
    int64_t steps; /* so far */
    double started;
    double waited; /* of the way that is measured: seconds of all its devices */
};

static struct report report_of(const struct tuning *tuning, enum report_type type)
{
    struct report report = report_blank(type);
    report.step = tuning->steps;
    report.steps = STEPS * (int64_t)tuning->n_ways;
    report.epoch = 1;
    report.epochs = 1;
    return report;
}

static void send(const struct tuning *tuning, const struct report *report)
{
    tuning->config->sink.report(tuning->config->sink.context, report);
}

/* How long is left is guessed by the steps: all ways as quick as those before. Losses are nobody's:
 * each way begins anew. */
static void count_step(struct tuning *tuning, const struct strategy_result *result)
{
    tuning->steps++;
    struct report report = report_of(tuning, REPORT_PROGRESS);
    double seconds = clock_seconds() - tuning->started;
    report.samples_per_second =
        (double)(tuning->steps * tuning->config->job->train.batch_size) / seconds;
    report.seconds_left = seconds / (double)tuning->steps * (double)(report.steps - tuning->steps);
    for (int d = 0; d < tuning->config->n_devices; d++)
        tuning->waited += result->times[d].waited;
    send(tuning, &report);
}

/* The mean and the unbiased standard deviation. */
static void sum_up(struct way *way, const double *seconds, double waited, int n_devices)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < REPEATS; i++)
        sum += seconds[i];
    way->mean = sum / REPEATS;
    for (int i = 0; i < REPEATS; i++)
        squares += (seconds[i] - way->mean) * (seconds[i] - way->mean);
    way->deviation = sqrt(squares / (REPEATS - 1));
    way->waiting = waited / (way->mean * REPEATS * BATCHES * n_devices);
    way->measured = true;
}

static void say_way(const struct tuning *tuning, const struct way *way)
{
    char line[160], size[32] = "";
    if (way->split_size > 0)
        snprintf(size, sizeof size, " %lld", (long long)way->split_size);
    if (way->measured)
        snprintf(line, sizeof line, "%s%s: %.4g s a step, deviation %.2g, waiting %.0f %%",
                 way->name, size, way->mean, way->deviation, 100 * way->waiting);
    else
        snprintf(line, sizeof line, "%s%s: cannot be: a BatchNorm would have one value a channel",
                 way->name, size);
    tuning->config->sink.say(tuning->config->sink.context, line);
}

static int run_steps(struct tuning *tuning, struct measuring *measuring, int n, struct err *err)
{
    struct strategy_result result;
    int rc = 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        rc = measure_step(measuring, &result, err);
        if (rc == 0)
            count_step(tuning, &result);
    }
    return rc;
}

/* One step unmeasured, then all repeats: seconds a step. */
static int measure(struct tuning *tuning, const struct trainer_config *config,
                   double ret_seconds[static REPEATS], struct err *err)
{
    struct measuring *measuring = NULL;
    int rc = measure_open(config, &measuring, err);
    if (rc == 0)
        rc = run_steps(tuning, measuring, 1, err);
    tuning->waited = 0;
    for (int i = 0; rc == 0 && i < REPEATS; i++) {
        double begun = clock_seconds();
        rc = run_steps(tuning, measuring, BATCHES, err);
        ret_seconds[i] = (clock_seconds() - begun) / BATCHES;
    }
    measure_close(measuring);
    return rc;
}

static int measure_way(struct tuning *tuning, struct way *way, struct err *err)
{
    struct job job = *tuning->config->job; /* borrows all of it, and is not freed */
    struct trainer_config config = *tuning->config;
    double seconds[REPEATS];
    int64_t before = tuning->steps;
    config.job = &job;
    if (way->mode == PARALLEL_SINGLE)
        config.n_devices = 1;
    job.parallel.mode = way->mode;
    job.parallel.schedule = way->schedule;
    job.parallel.split_size = way->split_size;
    job.parallel.microbatches = 0;
    int rc = measure(tuning, &config, seconds, err);
    if (rc == ERR_MODEL_SHAPE && way->split_size > 0) {
        *err = (struct err)ERR_INIT;
        rc = 0;
    } else if (rc == 0) {
        sum_up(way, seconds, tuning->waited, config.n_devices);
    }
    if (rc == 0)
        say_way(tuning, way);
    tuning->steps = before + STEPS;
    return rc;
}

static void list_ways(struct tuning *tuning)
{
    const struct job *job = tuning->config->job;
    enum pipeline_schedule schedule = job->parallel.schedule;
    int64_t rows[LIMIT_DEVICES];
    chunk_sizes(job->train.batch_size, (int)job->parallel.replicas, rows);
    if (schedule == PIPELINE_NONE)
        schedule = PIPELINE_ZERO_BUBBLE;
    tuning->ways[0] = (struct way){.name = "single", .mode = PARALLEL_SINGLE};
    tuning->ways[1] =
        (struct way){.name = "model_parallel", .mode = PARALLEL_STAGES, .schedule = PIPELINE_NONE};
    tuning->n_ways = 2;
    for (size_t i = 0; i < SPLIT_SIZES; i++)
        if (split_sizes[i] < rows[0])
            tuning->ways[tuning->n_ways++] = (struct way){.name = "pipelined",
                                                          .mode = PARALLEL_STAGES,
                                                          .schedule = schedule,
                                                          .split_size = split_sizes[i]};
}

/* The quickest of the pipelined ways; NULL: there is none. */
static const struct way *best_of(const struct tuning *tuning)
{
    const struct way *best = NULL;
    for (size_t i = 2; i < tuning->n_ways; i++)
        if (tuning->ways[i].measured && (best == NULL || tuning->ways[i].mean < best->mean))
            best = &tuning->ways[i];
    return best;
}

static json_t *ways_json(const struct tuning *tuning)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < tuning->n_ways; i++) {
        const struct way *way = &tuning->ways[i];
        if (way->measured)
            list = json_list_append(list, json_pack("{s:s, s:I, s:f, s:f, s:f}", "way", way->name,
                                                    "split_size", (json_int_t)way->split_size,
                                                    "mean", way->mean, "deviation", way->deviation,
                                                    "waiting", way->waiting));
    }
    return list;
}

static json_t *split_json(const struct job_parallel *parallel)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < parallel->n_split; i++)
        list = json_list_append(list, json_string(parallel->split[i]));
    return list;
}

static json_t *tuning_json(const struct tuning *tuning)
{
    const struct job *job = tuning->config->job;
    const struct way *best = best_of(tuning);
    json_t *root =
        json_pack("{s:i, s:i, s:I, s:o, s:o}", "repeats", REPEATS, "batches", BATCHES, "batch_size",
                  (json_int_t)job->train.batch_size, "ways", ways_json(tuning), "best_split_size",
                  best != NULL ? json_integer(best->split_size) : json_null());
    if (root != NULL && job->parallel.split != NULL)
        root = json_put(root, "split", split_json(&job->parallel));
    return root;
}

static int finish(struct tuning *tuning, struct err *err)
{
    struct report report = report_of(tuning, REPORT_DONE);
    json_t *root = tuning_json(tuning);
    char *text = root != NULL ? json_pretty(root) : NULL;
    int rc = text == NULL ? err_set(err, ERR_NOMEM, "no memory for the results")
                          : file_replace(tuning->output.path, "tune.json", text, strlen(text), err);
    if (rc == 0)
        rc = file_path(report.path, err, "%s/tune.json", tuning->output.path);
    if (rc == 0)
        send(tuning, &report);
    free(text);
    json_decref(root);
    return rc;
}

static int begin(struct tuning *tuning, struct err *err)
{
    struct report report = report_of(tuning, REPORT_STARTED);
    int rc = output_write_job(&tuning->output, tuning->config->job, err);
    if (rc == 0)
        rc = file_path(report.path, err, "%s", tuning->output.path);
    if (rc == 0)
        send(tuning, &report);
    tuning->started = clock_seconds();
    return rc;
}

int tune_run(const struct trainer_config *config, struct err *err)
{
    struct tuning tuning = {.config = config, .output = {.lock = -1}};
    list_ways(&tuning);
    int rc = output_open(config->output, config->job->name, &tuning.output, err);
    if (rc == 0)
        rc = begin(&tuning, err);
    for (size_t i = 0; rc == 0 && i < tuning.n_ways; i++)
        rc = measure_way(&tuning, &tuning.ways[i], err);
    if (rc == 0)
        rc = finish(&tuning, err);
    output_close(&tuning.output);
    return rc;
}
