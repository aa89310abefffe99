/* check_data_parallel.c: what users of DataParallel rely on, by value: which device gets what,
 * whose loss and whose statistics count, and what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "tests/engine/idx_files.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

static struct run_job run;

static char *place(const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", checks_scratch(), name);
    return path;
}

/* A patch for the table `rows`: a column x, a column y. */
static const char *table(const char *rows, const char *layers, const char *train,
                         const char *reduction)
{
    static char patch[2048];
    snprintf(
        patch, sizeof patch,
        "{'model': {'input': {'shape': [1]}, 'layers': [%s]},"
        " 'data': {'train': {'format': 'csv', 'path': '%s', 'samples': null, 'seed': null,"
        " 'classes': null}, 'validation': null, 'shuffle': false},"
        " 'loss': {'type': 'MSELoss', 'reduction': '%s'}, 'optimizer': {'lr': 0.5, 'momentum': 0},"
        " 'checkpoint': {'every': 'never'}, 'train': {%s}}",
        layers, idx_file("table.csv", rows, strlen(rows)), reduction, train);
    return patch;
}

/* The number of rows and the first row of metrics.jsonl. */
static json_t *first_row(const char *output)
{
    char *text = run_job_contents(output, "metrics.jsonl", NULL);
    json_t *row = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
    ck_assert_msg(row != NULL, "%s", text);
    free(text);
    return row;
}

static void ck_replica_losses(const char *output, const double *want, size_t n)
{
    json_t *row = first_row(output);
    const json_t *found = json_object_get(row, "replica_losses");
    ck_assert_uint_eq(json_array_size(found), n);
    for (size_t i = 0; i < n; i++)
        ck_assert_double_eq_tol(json_number_value(json_array_get(found, i)), want[i], 1e-7);
    json_decref(row);
}

#define ZERO                                                                                       \
    "{'type': 'Linear', 'name': 'fc', 'out_features': 1, 'bias': false,"                           \
    " 'weight_init': {'type': 'constant', 'val': 0}}"

/* Losses of the samples [1, 1, 1 | 4, 4]: the batch's mean is 2.2, not (1 + 4) / 2. */
START_TEST(a_mean_is_over_samples_not_over_devices)
{
    run_job_well(table("0,1\n0,-1\n0,1\n0,2\n0,-2\n", ZERO, "'epochs': 1, 'batch_size': 5", "mean"),
                 place("mean"), 2, &run);
    ck_assert_double_eq_tol(run.progress.loss, 2.2, 1e-7);
    ck_replica_losses(place("mean"), (const double[]){1, 4}, 2);
}
END_TEST

/* The same over a window of two batches, [1 | 1] and [1 | 4], and of a sum. */
START_TEST(a_devices_mean_is_over_its_own_samples)
{
    static const char rows[] = "0,1\n0,-1\n0,1\n0,2\n";
    run_job_well(table(rows, ZERO, "'epochs': 1, 'batch_size': 2, 'accumulate': 2", "mean"),
                 place("window"), 2, &run);
    ck_assert_double_eq_tol(run.progress.loss, 7.0 / 4, 1e-7);
    ck_replica_losses(place("window"), (const double[]){1, 2.5}, 2);
    run_job_well(table(rows, ZERO, "'epochs': 1, 'batch_size': 4", "sum"), place("sum"), 2, &run);
    ck_assert_double_eq_tol(run.progress.loss, 7, 1e-7);
    ck_replica_losses(place("sum"), (const double[]){2, 5}, 2);
}
END_TEST

#define PLAIN "'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 3}]"

START_TEST(nine_samples_on_four_devices_leave_one_idle)
{
    run_job_well("{'model': {" PLAIN "}, 'data': {'train': {'samples': 9}},"
                 " 'train': {'epochs': 1, 'batch_size': 9, 'trace': ['shapes']}}",
                 place("nine"), 4, &run);
    ck_assert_str_eq(run.said,
                     "Let's use 4 devices\n"
                     "warning: a batch of 9 samples makes 3 chunks for 4 devices; these rest: "
                     "cpu:3\n"
                     "In Model: input size [3, 5] output size [3, 3]\n"
                     "In Model: input size [3, 5] output size [3, 3]\n"
                     "In Model: input size [3, 5] output size [3, 3]\n"
                     "Outside: input size [9, 5] output size [9, 3]\n");
    json_t *row = first_row(place("nine"));
    ck_assert_uint_eq(json_array_size(json_object_get(row, "replica_losses")), 3);
    json_decref(row);
}
END_TEST

START_TEST(one_sample_is_a_batch)
{
    run_job_well("{'model': {" PLAIN "}, 'data': {'train': {'samples': 1}},"
                 " 'train': {'epochs': 1, 'batch_size': 4}}",
                 place("one"), 2, &run);
    ck_assert_str_eq(run.said, "warning: a batch of 1 sample makes 1 chunk for 2 devices; these "
                               "rest: cpu:1\n");
}
END_TEST

/* Chunks of 4, 4, 4 and 1: of every batch, and of an epoch's last one alone. */
static const char *const thirteens[] = {
    "{'data': {'train': {'samples': 26}}, 'train': {'batch_size': 13}}",
    "{'data': {'train': {'samples': 45}}, 'train': {'batch_size': 16}}",
};

START_TEST(thirteen_samples_on_four_devices_with_batch_norm_are_refused)
{
    struct err err = ERR_INIT;
    struct trainer_plan plan;
    struct job *job = run_job_parse(thirteens[_i]);
    struct trainer_config config = run_job_config(job, 4, place("thirteen"));
    ck_assert_int_eq(trainer_plan(&config, &plan, &err), ERR_MODEL_SHAPE);
    ck_assert_str_eq(err.path, "/model/layers/1");
    ck_assert_ptr_nonnull(strstr(err.message, "layer \"bn\" (BatchNorm1d): a chunk of 1 sample has "
                                              "one value a channel"));
    job_free(job);
    run_job(thirteens[_i], place("thirteen"), 4, 0, &run);
    ck_assert_int_eq(run.rc, ERR_MODEL_SHAPE);
}
END_TEST

static const char *array(const char *name, uint32_t n, uint32_t size)
{
    static const uint8_t elements[64];
    uint8_t file[128];
    const uint32_t dim[] = {n, size};
    return idx_file(
        name, file,
        idx_make(file, 0x08, size > 0 ? 2 : 1, dim, elements, n * (size > 0 ? size : 1)));
}

/* Scatter would make chunks of one and none of the other: nothing is dropped, nothing repeated. */
START_TEST(inputs_of_five_and_of_one_sample_are_refused)
{
    char patch[2048];
    snprintf(
        patch, sizeof patch,
        "{'model': {'input': null, 'inputs': {'left': {'shape': [2]}, 'right': {'shape': [2]}},"
        " 'layers': [{'type': 'Add', 'inputs': ['left', 'right']},"
        " {'type': 'Linear', 'out_features': 3}]},"
        " 'data': {'train': {'format': 'idx', 'inputs': {'left': '%s', 'right': '%s'},"
        " 'targets': '%s', 'samples': null, 'seed': null, 'classes': null},"
        " 'validation': null}}",
        array("left.idx", 5, 2), array("right.idx", 1, 2), array("labels.idx", 5, 0));
    run_job(patch, place("siblings"), 2, 0, &run);
    ck_assert_int_eq(run.rc, ERR_DATA_INVALID);
    ck_assert_msg(strstr(run.err.message, "right.idx") != NULL &&
                      strstr(run.err.message, "1") != NULL && strstr(run.err.message, "5") != NULL,
                  "%s: %s", run.err.path, run.err.message);
}
END_TEST

/* Runs the job on cpu:0 and cpu:1 in that order, or in the other. */
static void run_in_order(const char *patch, const char *output, bool reversed)
{
    struct job *job = run_job_parse(patch);
    struct trainer_config config = run_job_config(job, 2, output);
    const struct device_config devices[] = {config.devices[reversed], config.devices[!reversed]};
    config.devices = devices;
    run_job_with(&config, 0, &run);
    ck_assert_msg(run.rc == 0, "%s: %s", run.err.path, run.err.message);
    job_free(job);
}

/* The first device named is the controller: its chunk is the batch's first, its BatchNorm's
 * statistics are the model's. */
START_TEST(the_order_of_devices_names_the_controller)
{
    static const char patch[] = "{'train': {'record': ['bn.output']}}";
    run_in_order(patch, place("straight"), false);
    run_in_order(patch, place("reversed"), true);
    run_job_same_file(place("straight"), place("reversed"), "weights.safetensors");
    char *straight = run_job_contents(place("straight"), "record.jsonl", NULL);
    char *reversed = run_job_contents(place("reversed"), "record.jsonl", NULL);
    ck_assert_ptr_nonnull(strstr(straight, "\"device\": \"cpu:0\""));
    ck_assert(strstr(reversed, "\"cpu:1\"") < strstr(reversed, "\"cpu:0\""));
    for (char *at = straight; (at = strstr(at, "cpu:")) != NULL; at += 5)
        at[4] = at[4] == '0' ? '1' : '0';
    ck_assert_str_eq(straight, reversed);
    free(straight);
    free(reversed);
}
END_TEST

/* x = [0, 2 | 10, 14], momentum 0.1: mean 0.1 * 1, variance 0.9 + 0.1 * 2, one batch. */
START_TEST(batch_norm_keeps_the_controllers_statistics)
{
    struct safetensors *file;
    struct err err = ERR_INIT;
    char path[600];
    run_job_well(table("0,0\n2,0\n10,0\n14,0\n",
                       "{'type': 'BatchNorm1d', 'name': 'bn', 'momentum': 0.1}, " ZERO,
                       "'epochs': 1, 'batch_size': 4", "mean"),
                 place("bn"), 2, &run);
    snprintf(path, sizeof path, "%s/weights.safetensors", place("bn"));
    ck_assert_int_eq(safetensors_open(path, &file, &err), 0);
    const float *mean = safetensors_find(file, "bn.running_mean")->data;
    const float *var = safetensors_find(file, "bn.running_var")->data;
    const int64_t *tracked = safetensors_find(file, "bn.num_batches_tracked")->data;
    ck_assert_float_eq_tol(*mean, 0.1f, 1e-7f);
    ck_assert_float_eq_tol(*var, 1.1f, 1e-6f);
    ck_assert_int_eq(*tracked, 1);
    safetensors_close(file);
}
END_TEST

/* 100000 outputs of 8 samples; in MiB. */
static const struct memory_case {
    int devices, there;
    const char *path, *message;
} memories[] = {
    {1, 100, NULL, NULL},
    {1, 10, "/train/batch_size",
     "the job needs 16.0 MiB on cpu:0, 6.9 of them for variables, and there are 10.0"},
    {1, 4, "/model",
     "the job needs 16.0 MiB on cpu:0, 6.9 of them for variables, and there are 4.0"},
    {3, 100, NULL, NULL},
    {3, 25, "/train/batch_size",
     "the job needs 33.6 MiB on its devices, 20.6 of them for variables, and there are 25.0"},
    {3, 10, "/model",
     "the job needs 33.6 MiB on its devices, 20.6 of them for variables, and there are 10.0"},
};

START_TEST(a_job_that_does_not_fit_is_refused)
{
    char patch[256];
    struct device_config devices[3];
    const struct memory_case *test = &memories[_i];
    snprintf(patch, sizeof patch,
             "{'model': {'layers': [{'type': 'Linear', 'out_features': 100000}]},"
             " 'train': {'batch_size': 8}, 'parallel': {'mode': '%s', 'devices': %d}}",
             test->devices > 1 ? "replicate" : "single", test->devices);
    struct job *job = run_job_parse(patch);
    struct trainer_config config = run_job_config(job, test->devices, place("small"));
    for (int i = 0; i < test->devices; i++) {
        devices[i] = config.devices[i];
        devices[i].memory_bytes = (int64_t)test->there << 20;
    }
    config.devices = devices;
    run_job_with(&config, 0, &run);
    ck_assert_int_eq(run.rc, test->path == NULL ? 0 : ERR_JOB_INVALID);
    if (test->path != NULL) {
        ck_assert_str_eq(run.err.path, test->path);
        ck_assert_str_eq(run.err.message, test->message);
    }
    job_free(job);
}
END_TEST

/* Runs on devices of these cores and this memory, in GB; returns what the log says of it. */
static const char *said_of(const int *cores, const int *memory, int n, const char *mode)
{
    char patch[128];
    struct device_config devices[3];
    snprintf(patch, sizeof patch, "{'parallel': {'mode': '%s', 'devices': %d}}", mode, n);
    struct job *job = run_job_parse(patch);
    struct trainer_config config = run_job_config(job, n, place("unequal"));
    for (int i = 0; i < n; i++) {
        devices[i] = config.devices[i];
        devices[i].n_threads = cores[i];
        devices[i].memory_bytes = (int64_t)memory[i] << 30;
    }
    config.devices = devices;
    run_job_with(&config, 0, &run);
    ck_assert_msg(run.rc == 0, "%s: %s", run.err.path, run.err.message);
    job_free(job);
    return run.said;
}

START_TEST(unequal_devices_are_warned_of_once)
{
    static const int equal[] = {4, 4, 4}, three[] = {4, 3, 4}, two[] = {4, 4, 2}, one[] = {1, 4, 2};
#define WARNING(least, what, most)                                                                 \
    "warning: " least " has under 75 % of the " what " of " most ", which will wait for it: you "  \
    "may want to leave it out of \"devices\"\n"
    ck_assert_str_eq(said_of(equal, equal, 3, "replicate"), "");
    ck_assert_str_eq(said_of(three, three, 3, "replicate"), "");
    ck_assert_str_eq(said_of(two, equal, 3, "replicate"), WARNING("cpu:2", "cores", "cpu:0"));
    ck_assert_str_eq(said_of(two, one, 3, "replicate"), WARNING("cpu:0", "memory", "cpu:1"));
    ck_assert_str_eq(said_of(two, two, 1, "single"), "");
}
END_TEST

/* One of those named, whichever it is: the same outputs. */
START_TEST(outputs_are_gathered_on_the_device_named)
{
    static const char trained[] = "{'train': {'epochs': 1}}";
    char patch[1024];
    run_job_well(trained, place("trained"), 2, &run);
    for (int i = 0; i < 2; i++) {
        snprintf(patch, sizeof patch,
                 "{'model': {'init': {'weights': '%s/weights.safetensors'}},"
                 " 'train': {'mode': 'predict'}, 'parallel': {'mode': 'replicate',"
                 " 'devices': ['cpu:0', 'cpu:1'], 'output_device': 'cpu:%d'}}",
                 place("trained"), i);
        run_job_well(patch, place(i == 0 ? "first" : "second"), 2, &run);
    }
    run_job_same_file(place("first"), place("second"), "outputs.npy");
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("data parallel");
    TCase *tcase = checks_case(suite, "by value", 60);
    tcase_add_test(tcase, a_mean_is_over_samples_not_over_devices);
    tcase_add_test(tcase, a_devices_mean_is_over_its_own_samples);
    tcase_add_test(tcase, nine_samples_on_four_devices_leave_one_idle);
    tcase_add_test(tcase, one_sample_is_a_batch);
    tcase_add_loop_test(tcase, thirteen_samples_on_four_devices_with_batch_norm_are_refused, 0,
                        (int)(sizeof thirteens / sizeof thirteens[0]));
    tcase_add_test(tcase, inputs_of_five_and_of_one_sample_are_refused);
    tcase_add_test(tcase, the_order_of_devices_names_the_controller);
    tcase_add_test(tcase, batch_norm_keeps_the_controllers_statistics);
    tcase_add_loop_test(tcase, a_job_that_does_not_fit_is_refused, 0,
                        (int)(sizeof memories / sizeof memories[0]));
    tcase_add_test(tcase, unequal_devices_are_warned_of_once);
    tcase_add_test(tcase, outputs_are_gathered_on_the_device_named);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
