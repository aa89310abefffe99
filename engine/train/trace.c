/* trace.c: see trace.h. */
#include "engine/train/trace.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "engine/parallel/chunk.h"

enum { LINE_BYTES = 512 };

static void say(const struct trainer_config *config, const char *line)
{
    config->sink.say(config->sink.context, line);
}

void trace_devices(const struct trainer_config *config)
{
    char line[LINE_BYTES];
    if (!config->job->train.trace_shapes || config->n_devices < 2)
        return;
    snprintf(line, sizeof line, "Let's use %d devices", config->n_devices);
    say(config, line);
}

static double memory_of(const struct device_config *device)
{
    return (double)device->memory_bytes;
}

static double cores_of(const struct device_config *device)
{
    return device->n_threads;
}

/* DataParallel's _check_balance. */
void trace_balance(const struct trainer_config *config)
{
    static const struct {
        const char *what;
        double (*of)(const struct device_config *device);
    } measures[] = {{"memory", memory_of}, {"cores", cores_of}};
    char line[LINE_BYTES];
    if (config->job->parallel.mode != PARALLEL_REPLICATE)
        return;
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
        const struct device_config *least = config->devices, *most = config->devices;
        for (int d = 1; d < config->n_devices; d++) {
            const struct device_config *device = &config->devices[d];
            least = measures[i].of(device) < measures[i].of(least) ? device : least;
            most = measures[i].of(device) > measures[i].of(most) ? device : most;
        }
        if (measures[i].of(least) >= 0.75 * measures[i].of(most))
            continue;
        snprintf(
            line, sizeof line,
            "warning: %s has under 75 %% of the %s of %s, which will wait for it: you may want "
            "to leave it out of \"devices\"",
            least->name, measures[i].what, most->name);
        say(config, line);
        return;
    }
}

/* A batch of n samples of this shape. */
static struct shape batched(int64_t n, const struct shape *sample)
{
    struct shape shape = {.rank = sample->rank + 1, .dim = {n}};
    memcpy(shape.dim + 1, sample->dim, (size_t)sample->rank * sizeof sample->dim[0]);
    return shape;
}

/* "[15, 5], [15]": of each input. */
static const char *input_sizes(const struct model *model, int64_t n, char *ret_text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < model->n_inputs && used < size; i++) {
        char text[SHAPE_TEXT];
        const struct model_input *input = &model->inputs[i];
        struct shape shape = input->shared ? input->shape : batched(n, &input->shape);
        used += (size_t)snprintf(ret_text + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 shape_format(&shape, text));
    }
    return ret_text;
}

static void say_sizes(const struct trainer_config *config, const struct model *model,
                      const char *where, int64_t n)
{
    char line[LINE_BYTES], input_text[LINE_BYTES - 2 * SHAPE_TEXT], output_text[SHAPE_TEXT];
    struct shape output = batched(n, &model->output);
    snprintf(line, sizeof line, "%s: input size %s output size %s", where,
             input_sizes(model, n, input_text, sizeof input_text),
             shape_format(&output, output_text));
    say(config, line);
}

void trace_batch(const struct trainer_config *config, const struct prepared *prepared,
                 const struct batch *batch, const struct strategy_result *result)
{
    for (int i = 0; i < result->n_replicas; i++)
        if (result->replicas[i].samples > 0)
            say_sizes(config, prepared->model, "In Model", result->replicas[i].samples);
    say_sizes(config, prepared->model, "Outside", batch->n);
}

static bool any_matches(const struct model *model, const char *pattern)
{
    for (size_t i = 0; i < model->n_variables; i++)
        if (model->variables[i].kind == VARIABLE_PARAMETER &&
            fnmatch(pattern, model->variables[i].name, 0) == 0)
            return true;
    return false;
}

void trace_unmatched(const struct trainer_config *config, const struct prepared *prepared)
{
    char line[LINE_BYTES];
    const struct job_optimizer *optimizer = &config->job->optimizer;
    for (size_t i = 0; i < optimizer->n_no_decay; i++) {
        if (any_matches(prepared->model, optimizer->no_decay[i]))
            continue;
        snprintf(line, sizeof line,
                 "warning: /optimizer/no_decay/%zu: no parameter's name matches \"%.128s\"", i,
                 optimizer->no_decay[i]);
        say(config, line);
    }
}

/* ": cpu:6, cpu:7" */
static void list_resting(const struct trainer_config *config, int first, char *ret_text,
                         size_t size)
{
    size_t used = 0;
    for (int i = first; i < config->n_devices && used < size; i++)
        used += (size_t)snprintf(ret_text + used, size - used, "%s%s", i > first ? ", " : "",
                                 config->devices[i].name);
}

void trace_resting(const struct trainer_config *config, const struct prepared *prepared)
{
    char line[LINE_BYTES], names[LINE_BYTES - 128];
    const struct strategy_config *strategy = &prepared->strategy;
    if (config->job->parallel.mode == PARALLEL_STAGES)
        return;
    for (size_t i = 0; i < strategy->n_train_batches; i++) {
        int64_t sizes[LIMIT_DEVICES];
        int shards = (int)config->job->parallel.shards;
        int chunks = shards > 0 ? shards : config->n_devices, busy = 0;
        int64_t n = strategy->train_batches[i].n;
        int used = chunk_sizes(n, chunks, sizes);
        while (busy < config->n_devices && chunk_first(chunks, config->n_devices, busy) < used)
            busy++;
        if (busy == config->n_devices)
            continue;
        list_resting(config, busy, names, sizeof names);
        snprintf(line, sizeof line,
                 "warning: a batch of %lld sample%s makes %d chunk%s for %d "
                 "devices; these rest: %s",
                 (long long)n, n == 1 ? "" : "s", used, used == 1 ? "" : "s", config->n_devices,
                 names);
        say(config, line);
        return;
    }
}
