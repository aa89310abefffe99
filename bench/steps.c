/* steps.c: a job's training steps on request: what bench/run times against PyTorch.
 *
 *     make bench/steps && bench/steps [--cpu-devices N] [--save DIR] JOB
 *
 * Trains the job's first batch again and again. After the first step, and then after each line of
 * standard input, a number of steps, it prints one line of JSON: {"seconds": [...], "losses":
 * [...]}. With --save it only writes the initial weights and that batch, so that another program
 * can do the same work: DIR/weights.safetensors, DIR/batch.safetensors.
 */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/train/measure.h"
#include "engine/train/weights.h"
#include "engine/worker/setup.h"

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

static int die(const struct err *err)
{
    fprintf(stderr, "steps: %s%s%s\n", err->path, err->path[0] != '\0' ? ": " : "", err->message);
    return EXIT_FAILURE;
}

static struct shape batch_shape(int64_t n, const struct shape *sample)
{
    struct shape shape = {.rank = sample->rank + 1, .dim = {n}};
    memcpy(shape.dim + 1, sample->dim, (size_t)sample->rank * sizeof sample->dim[0]);
    return shape;
}

static struct safetensor batch_tensor(const char *name, int64_t n, const struct shape *sample,
                                      enum dtype dtype, const void *data)
{
    struct safetensor tensor = {name, batch_shape(n, sample), dtype, data, 0};
    tensor.bytes = (size_t)shape_count(&tensor.shape) * dtype_size(dtype);
    return tensor;
}

static int save(const struct measuring *measuring, const char *folder, struct err *err)
{
    const struct measured what = measure_what(measuring);
    const struct model *model = what.model;
    struct safetensor tensors[MODEL_MAX_INPUTS + 1];
    char path[PATH_MAX];
    int n = model->n_inputs;
    for (int i = 0; i < n; i++)
        tensors[i] = batch_tensor(model->inputs[i].name, what.batch->n, &model->inputs[i].shape,
                                  model->inputs[i].dtype, what.batch->inputs[i]);
    tensors[n] = batch_tensor("target", what.batch->n, &model->target, model->target_dtype,
                              what.batch->targets);
    snprintf(path, sizeof path, "%s/batch.safetensors", folder);
    int rc = safetensors_write(path, tensors, (size_t)n + 1, NULL, err);
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    return rc != 0 ? rc : weights_write(what.strategy, model, path, NULL, err);
}

static int run_steps(struct measuring *measuring, long n, struct err *err)
{
    double *seconds = calloc(2 * (size_t)n, sizeof *seconds), *losses = seconds + n;
    struct strategy_result result = {0};
    int rc = seconds != NULL ? 0 : err_set(err, ERR_NOMEM, "out of memory");
    for (long i = 0; rc == 0 && i < n; i++) {
        double begun = clock_seconds();
        rc = measure_step(measuring, &result, err);
        seconds[i] = clock_seconds() - begun;
        losses[i] = result.loss;
    }
    for (int list = 0; rc == 0 && list < 2; list++) {
        printf(list == 0 ? "{\"seconds\": [" : ", \"losses\": [");
        for (long i = 0; i < n; i++)
            printf("%s%.9g", i > 0 ? ", " : "", seconds[list * n + i]);
        printf(list == 0 ? "]" : "]}\n");
    }
    fflush(stdout);
    free(seconds);
    return rc;
}

static int serve(struct measuring *measuring, struct err *err)
{
    char line[32];
    int rc = run_steps(measuring, 1, err);
    while (rc == 0 && fgets(line, sizeof line, stdin) != NULL) {
        long n = strtol(line, NULL, 10);
        rc = n > 0 && n < 1000000 ? run_steps(measuring, n, err)
                                  : err_set(err, ERR_USAGE, "not a number of steps: %s", line);
    }
    return rc;
}

static int bench(const struct command_options *options, struct err *err)
{
    struct setup setup;
    struct measuring *measuring = NULL;
    int rc = setup_open(options, &setup, err);
    if (rc != 0)
        return rc;
    const struct trainer_config config = {
        .job = setup.job,
        .backend = &backend_cpu,
        .devices = setup.devices,
        .n_devices = setup.n_devices,
        .stop = options->stop,
        .sink = {.report = report, .say = say},
    };
    rc = measure_open(&config, &measuring, err);
    if (rc == 0)
        rc =
            options->output != NULL ? save(measuring, options->output, err) : serve(measuring, err);
    measure_close(measuring);
    setup_close(&setup);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {
        {"cpu-devices", required_argument, NULL, 'c'}, {"save", required_argument, NULL, 's'}, {0}};
    static const volatile sig_atomic_t never = 0;
    struct command_options options = {.stop = &never};
    struct err err = ERR_INIT;
    int option;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 'c')
            options.cpu_devices = strtoul(optarg, NULL, 10);
        else if (option == 's')
            options.output = optarg;
        else
            return 2;
    }
    if (optind != argc - 1) {
        fprintf(stderr, "usage: steps [--cpu-devices N] [--save DIR] JOB\n");
        return 2;
    }
    options.document = argv[optind];
    return bench(&options, &err) == 0 ? EXIT_SUCCESS : die(&err);
}
