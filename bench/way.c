/* way.c: see way.h. */
#include "bench/way.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/graph/graph.h"
#include "engine/ops/registry.h"
#include "engine/train/init.h"

void die(const struct err *err)
{
    fprintf(stderr, "%s%s%s\n", err->path, err->path[0] != '\0' ? ": " : "", err->message);
    exit(1);
}

static void *room(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        die(&(struct err){.message = "out of memory"});
    return memory;
}

struct samples samples_new(int64_t n, int64_t values, int64_t classes)
{
    struct samples samples = {
        .inputs = room((size_t)(n * values) * sizeof(float)),
        .targets = room((size_t)(n * classes) * sizeof(float)),
    };
    uint32_t state = 1;
    for (int64_t i = 0; i < n * values; i++) {
        state = state * 1664525u + 1013904223u;
        samples.inputs[i] = (float)(int32_t)state * 0x1p-31f;
    }
    for (int64_t i = 0; i < n; i++)
        samples.targets[i * classes + i * 7919 % classes] = 1;
    return samples;
}

void samples_free(struct samples *samples)
{
    free(samples->inputs);
    free(samples->targets);
}

struct job *way_job(int64_t batch, const char *parallel)
{
    char text[1024];
    struct job *job;
    struct err err = ERR_INIT;
    int n =
        snprintf(text, sizeof text,
                 "{\"version\": 1, \"model\": {\"preset\": \"resnet50\", \"args\": {\"num_classes\""
                 ": 1000}, \"input\": {\"shape\": [3, 128, 128]}}, \"data\": {\"train\": "
                 "{\"format\": \"random\", \"samples\": %lld, \"classes\": 1000}}, \"loss\": "
                 "{\"type\": \"MSELoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.001}, "
                 "\"checkpoint\": {\"every\": \"never\", \"resume\": \"never\"}, \"train\": "
                 "{\"max_steps\": 1, \"batch_size\": %lld}, \"parallel\": %s}",
                 (long long)batch, (long long)batch, parallel);
    if (job_parse(text, (size_t)n, &job, &err) != 0)
        die(&err);
    return job;
}

/* A figure of this process, or of the machine, in bytes; 0: not known. */
static size_t read_bytes(const char *path, const char *key)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtoul(line + strlen(key), NULL, 10);
    fclose(file);
    return kib * 1024;
}

/* From now on the peak is what is resident now. */
static size_t restart_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "we");
    if (file != NULL) {
        fputs("5", file);
        fclose(file);
    }
    return read_bytes("/proc/self/status", "VmRSS:");
}

static void plan(struct way *way)
{
    struct strategy_memory memory[LIMIT_DEVICES];
    struct err err = ERR_INIT;
    double flops;
    if (strategy_plan(&way->config, memory, &flops, &err) != 0)
        die(&err);
    for (int d = 0; d < way->config.n_devices; d++)
        way->plan_bytes += strategy_bytes(&memory[d]);
    size_t there = read_bytes("/proc/meminfo", "MemAvailable:");
    if (there > 0 && way->plan_bytes > there) {
        fprintf(stderr, "%s takes %.1f GiB, of which %.1f are free: give a smaller --batch\n",
                way->name, (double)way->plan_bytes / 0x1p30, (double)there / 0x1p30);
        exit(1);
    }
}

static double train(struct way *way, const struct samples *samples, struct strategy_result *result)
{
    struct err err = ERR_INIT;
    const struct batch batch = {
        .n = way->batch, .inputs = {samples->inputs}, .targets = samples->targets};
    double begun = clock_seconds();
    if (strategy_train(way->strategy, &batch, STEP_WHOLE, &way->step, result, &err) != 0)
        die(&err);
    way->step.number++;
    return clock_seconds() - begun;
}

struct way *way_open(const char *name, struct job *job, const struct device_config *devices,
                     int n_devices, const struct samples *samples)
{
    struct way *way = room(sizeof *way);
    struct strategy_result result;
    struct err err = ERR_INIT;
    *way = (struct way){.name = name, .job = job, .batch = job->train.batch_size};
    if (model_build(job, &op_registry, &way->model, &err) != 0)
        die(&err);
    way->shape = (struct strategy_batch){way->batch, STEP_WHOLE};
    way->config = (struct strategy_config){
        .backend = &backend_cpu,
        .model = way->model,
        .devices = devices,
        .n_devices = n_devices,
        .train_batches = &way->shape,
        .n_train_batches = 1,
    };
    double divisor = graph_loss_divisor(way->model, samples->targets, way->batch);
    way->step = (struct step){.number = 1,
                              .loss_divisor = divisor,
                              .gradient_scale = 1 / divisor,
                              .lr = job->optimizer.lr};
    plan(way);
    size_t before = restart_peak();
    if (strategy_open(&way->config, &way->strategy, &err) != 0 ||
        init_all(way->strategy, way->model, &err) != 0)
        die(&err);
    train(way, samples, &result);
    way->peak_bytes = read_bytes("/proc/self/status", "VmHWM:") - before;
    return way;
}

double way_step(struct way *way, const struct samples *samples)
{
    struct strategy_result result;
    double seconds = train(way, samples, &result);
    if (way->n_steps < WAY_STEPS)
        way->seconds[way->n_steps++] = seconds;
    for (int d = 0; d < way->config.n_devices; d++) {
        for (int k = 0; k < SECTION_COUNT; k++)
            way->times[d].sections[k] += result.times[d].sections[k];
        way->times[d].waited += result.times[d].waited;
        way->times[d].reduced += result.times[d].reduced;
    }
    return seconds;
}

void way_close(struct way *way)
{
    strategy_close(way->strategy);
    way->strategy = NULL;
}

void way_free(struct way *way)
{
    way_close(way);
    model_free(way->model);
    job_free(way->job);
    free(way);
}

double way_mean(const struct way *way)
{
    double sum = 0;
    for (int i = 0; i < way->n_steps; i++)
        sum += way->seconds[i];
    return sum / way->n_steps;
}

double way_predicted(const struct way *way)
{
    const struct job_parallel *parallel = &way->job->parallel;
    int n = way->config.n_devices, m = 1;
    if (parallel->split_size > 0)
        m = (int)((way->batch + parallel->split_size - 1) / parallel->split_size);
    struct timetable_cost *costs = room((size_t)(m * n) * sizeof *costs);
    for (int i = 0; i < m * n; i++)
        for (int k = 0; k < SECTION_COUNT; k++)
            costs[i].of[k] = way->times[i % n].sections[k] / (m * way->n_steps);
    const struct timetable_config config = {.schedule = parallel->schedule,
                                            .stages = n,
                                            .microbatches = m,
                                            .training = true,
                                            .costs = costs};
    struct timetable *table;
    struct err err = ERR_INIT;
    if (timetable_build(&config, &table, &err) != 0)
        die(&err);
    double seconds = table->seconds;
    timetable_free(table);
    free(costs);
    return seconds;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(const double *values, int n)
{
    double sorted[WAY_STEPS];
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}
