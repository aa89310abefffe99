/* tune.c: `traind-worker tune`: measures a job in stages on its devices: on the first one alone, in
 * stages without micro-batches, and pipelined with micro-batches of several sizes. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/parallel/chunk.h"
#include "engine/train/measure.h"
#include "engine/worker/setup.h"
#include "proto/json.h"

/* As the model-parallel tutorial of PyTorch measures. */
static const struct measure_rule rule = {.repeats = 10, .batches = 3};
static const int64_t split_sizes[] = {1, 3, 5, 8, 10, 12, 20, 40, 60};

enum { SPLIT_SIZES = sizeof split_sizes / sizeof *split_sizes, WAYS = 2 + SPLIT_SIZES };

struct way { /* to run the job */
    const char *name;
    int64_t split_size; /* 0: the batch is whole */
    double mean, deviation;
    bool measured; /* else it cannot run: a BatchNorm would have one value a channel */
};

struct tuning {
    const struct command_options *options;
    struct setup *setup;
    struct job_parallel given; /* the document's */
    struct way ways[WAYS];
    size_t n_ways;
};

static void say(void *context, const char *line)
{
    (void)context;
    (void)line;
}

static void report(void *context, const struct report *what)
{
    (void)context;
    (void)what;
}

/* The mean and the unbiased standard deviation. */
static void sum_up(struct way *way, const double *seconds, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += seconds[i];
    way->mean = sum / n;
    for (int i = 0; i < n; i++)
        squares += (seconds[i] - way->mean) * (seconds[i] - way->mean);
    way->deviation = n > 1 ? sqrt(squares / (n - 1)) : 0;
    way->measured = true;
}

/* The job's own `parallel` is put back afterwards: it is freed by its mode. */
static int measure(struct tuning *tuning, struct way *way, const struct job_parallel *parallel,
                   int n_devices, struct err *err)
{
    struct job *job = tuning->setup->job;
    double seconds[16];
    const struct trainer_config config = {
        .job = job,
        .backend = &backend_cpu,
        .devices = tuning->setup->devices,
        .n_devices = n_devices,
        .stop = tuning->options->stop,
        .sink = {report, say, NULL},
    };
    job->parallel = *parallel;
    int rc = measure_steps(&config, &rule, seconds, err);
    job->parallel = tuning->given;
    if (rc == 0)
        sum_up(way, seconds, rule.repeats);
    if (rc == 0 && !tuning->options->json)
        printf("%-16s %10lld %14.6g %14.3g\n", way->name, (long long)way->split_size, way->mean,
               way->deviation);
    fflush(stdout);
    return way->split_size > 0 && rc == ERR_MODEL_SHAPE ? 0 : rc;
}

static struct way *add_way(struct tuning *tuning, const char *name, int64_t split_size)
{
    struct way *way = &tuning->ways[tuning->n_ways++];
    *way = (struct way){.name = name, .split_size = split_size};
    return way;
}

static int measure_single(struct tuning *tuning, struct err *err)
{
    struct job_parallel parallel = tuning->given;
    parallel.mode = PARALLEL_SINGLE;
    return measure(tuning, add_way(tuning, "single", 0), &parallel, 1, err);
}

static int measure_stages(struct tuning *tuning, const char *name, enum pipeline_schedule schedule,
                          int64_t split_size, struct err *err)
{
    struct job_parallel parallel = tuning->given;
    parallel.schedule = schedule;
    parallel.split_size = split_size;
    parallel.microbatches = 0;
    return measure(tuning, add_way(tuning, name, split_size), &parallel, tuning->setup->n_devices,
                   err);
}

static int measure_all(struct tuning *tuning, struct err *err)
{
    enum pipeline_schedule schedule = tuning->given.schedule;
    int64_t rows[LIMIT_DEVICES];
    chunk_sizes(tuning->setup->job->train.batch_size, (int)tuning->given.replicas, rows);
    if (schedule == PIPELINE_NONE)
        schedule = PIPELINE_ZERO_BUBBLE;
    int rc = measure_single(tuning, err);
    if (rc == 0)
        rc = measure_stages(tuning, "model_parallel", PIPELINE_NONE, 0, err);
    for (size_t i = 0; rc == 0 && i < SPLIT_SIZES; i++)
        if (split_sizes[i] < rows[0])
            rc = measure_stages(tuning, "pipelined", schedule, split_sizes[i], err);
    return rc;
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
            list =
                json_list_append(list, json_pack("{s:s, s:I, s:f, s:f}", "way", way->name,
                                                 "split_size", (json_int_t)way->split_size, "mean",
                                                 way->mean, "deviation", way->deviation));
    }
    return list;
}

static json_t *split_json(const struct tuning *tuning)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < tuning->given.n_split; i++)
        list = json_list_append(list, json_string(tuning->given.split[i]));
    return list;
}

static int print_json(const struct tuning *tuning, struct err *err)
{
    const struct way *best = best_of(tuning);
    json_t *root = json_pack(
        "{s:i, s:i, s:I, s:o, s:o}", "repeats", rule.repeats, "batches", rule.batches, "batch_size",
        (json_int_t)tuning->setup->job->train.batch_size, "ways", ways_json(tuning),
        "best_split_size", best != NULL ? json_integer(best->split_size) : json_null());
    if (root != NULL && tuning->given.split != NULL)
        root = json_put(root, "split", split_json(tuning));
    char *line = root != NULL ? json_line(root) : NULL;
    json_decref(root);
    if (line == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    puts(line);
    free(line);
    return 0;
}

static int tune(struct tuning *tuning, struct err *err)
{
    const struct job *job = tuning->setup->job;
    if (job->parallel.mode != PARALLEL_STAGES)
        return err_at(err, ERR_JOB_INVALID, "/parallel/mode",
                      "only a job of mode \"stages\" has something to tune");
    if (job->train.accumulate > 1)
        return err_at(err, ERR_JOB_UNSUPPORTED, "/train/accumulate",
                      "tuning of steps of several batches is not in this version");
    tuning->given = job->parallel;
    if (!tuning->options->json)
        printf("%-16s %10s %14s %14s\n", "way", "split size", "seconds a step", "deviation");
    int rc = measure_all(tuning, err);
    if (rc == 0 && tuning->options->json)
        return print_json(tuning, err);
    const struct way *best = best_of(tuning);
    if (rc == 0 && best != NULL)
        printf("\nsplit size %lld: %.2f times as quick as one device\n",
               (long long)best->split_size, tuning->ways[0].mean / best->mean);
    return rc;
}

int command_tune(const struct command_options *options, struct reporter *reporter, struct err *err)
{
    struct setup setup;
    (void)reporter;
    int rc = setup_open(options, &setup, err);
    if (rc != 0)
        return rc;
    struct tuning tuning = {.options = options, .setup = &setup};
    rc = tune(&tuning, err);
    setup_close(&setup);
    return rc;
}
