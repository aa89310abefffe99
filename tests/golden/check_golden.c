/* The whole engine against PyTorch: the cases of the generators here, trained here on one and on
 * two devices.
 *
 * Losses must agree to 1e-5 relative, each tensor to max|a-b| <= 1e-5 * max|b|, counts exactly. The
 * paths in the documents are relative to tests/golden, where the test runs. */
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "engine/train/trainer.h"
#include "engine/worker/machine.h"
#include "tests/golden/golden.h"
#include "tests/lib/checks.h"

static const char *const cases[] = {
    "mlp-plain",    "mlp-momentum",    "mlp-nesterov", "mlp-mse", "cnn-plain",
    "cnn-momentum", "cnn-nesterov",    "activations",  "planes",  "same",
    "tokens",       "attention",               /* generate_layers.py */
    "recurrent",    "packed",          "lstm", /* generate_recurrent.py */
    "spectral",     "spectral-tokens",         /* generate_spectral.py */
};
enum { N_CASES = sizeof cases / sizeof cases[0], MAX_STEPS = 16 };
static const double tolerance = 1e-5;

struct run {
    double loss[MAX_STEPS];
    size_t steps;
};

static void take_report(void *context, const struct report *report)
{
    struct run *run = context;
    if (report->type != REPORT_PROGRESS)
        return;
    ck_assert_uint_lt(run->steps, MAX_STEPS);
    run->loss[run->steps++] = report->loss;
}

static void take_line(void *context, const char *line)
{
    (void)context;
    (void)line;
}

static struct run train(const json_t *document, int n_devices, const char *output)
{
    struct job *job;
    struct machine machine;
    struct err err = ERR_INIT;
    struct run run = {0};
    ck_assert_msg(job_from_json(document, &job, &err) == 0, "%s: %s", err.path, err.message);
    ck_assert_int_eq(machine_probe((size_t)n_devices, false, &machine, &err), 0);
    for (int i = 0; i < n_devices; i++)
        machine.devices[i].n_threads = 1;
    struct trainer_config config = {
        .job = job,
        .backend = &backend_cpu,
        .devices = machine.devices,
        .n_devices = n_devices,
        .output = output,
        .stop = &(volatile sig_atomic_t){0},
        .sink = {.report = take_report, .say = take_line, .context = &run},
    };
    ck_assert_msg(trainer_run(&config, &err) == 0, "%s: %s", err.path, err.message);
    machine_done(&machine);
    job_free(job);
    return run;
}

static void compare_losses(const struct run *run, const json_t *wanted)
{
    ck_assert_uint_eq(run->steps, json_array_size(wanted));
    for (size_t i = 0; i < run->steps; i++) {
        double b = json_number_value(json_array_get(wanted, i));
        ck_assert_msg(fabs(run->loss[i] - b) <= tolerance * fabs(b), "step %zu: %.9g, PyTorch %.9g",
                      i + 1, run->loss[i], b);
    }
}

static void compare_weights(const char *ours, const char *wanted)
{
    struct safetensors *a, *b;
    struct err err = ERR_INIT;
    ck_assert_msg(safetensors_open(ours, &a, &err) == 0, "%s", err.message);
    ck_assert_msg(safetensors_open(wanted, &b, &err) == 0, "%s", err.message);
    ck_assert_uint_eq(safetensors_count(a), safetensors_count(b));
    for (size_t i = 0; i < safetensors_count(b); i++) {
        const struct safetensor *y = safetensors_at(b, i);
        const struct safetensor *x = safetensors_find(a, y->name);
        ck_assert_msg(x != NULL, "%s is missing", y->name);
        ck_assert_int_eq(x->dtype, y->dtype);
        ck_assert_msg(shape_equal(&x->shape, &y->shape), "%s has another shape", y->name);
        if (y->dtype == DTYPE_F32)
            golden_floats(y->name, x->data, y->data, y->bytes / sizeof(float), tolerance);
        else
            ck_assert_mem_eq(x->data, y->data, y->bytes);
    }
    safetensors_close(a);
    safetensors_close(b);
}

/* Trains on n_devices; compares with what PyTorch made on `torch_devices`. `batch_norm`: how, NULL:
 * as the document says. */
static void check_case(const char *name, int n_devices, int torch_devices, const char *batch_norm)
{
    char path[PATH_MAX], output[PATH_MAX];
    json_error_t error;
    snprintf(path, sizeof path, "%s.json", name);
    json_t *golden = json_load_file(path, 0, &error);
    ck_assert_msg(golden != NULL, "%s: %s", path, error.text);
    snprintf(output, sizeof output, "%s/%s-%d-%d", checks_scratch(), name, n_devices,
             torch_devices);
    json_t *document = json_object_get(golden, "job");
    if (batch_norm != NULL)
        json_object_set_new(json_object_get(document, "parallel"), "batch_norm",
                            json_string(batch_norm));
    struct run run = train(document, n_devices, output);

    char key[8], weights[PATH_MAX + 32];
    snprintf(key, sizeof key, "%d", torch_devices);
    compare_losses(&run, json_object_get(json_object_get(golden, "losses"), key));
    snprintf(path, sizeof path, "%s-%d-final.safetensors", name, torch_devices);
    snprintf(weights, sizeof weights, "%s/weights.safetensors", output);
    compare_weights(weights, path);
    json_decref(golden);
}

START_TEST(one_device)
{
    check_case(cases[_i], 1, 1, NULL);
}
END_TEST

START_TEST(two_devices)
{
    check_case(cases[_i], 2, 2, NULL);
}
END_TEST

/* torch.nn.SyncBatchNorm makes of several chunks what BatchNorm makes of the whole batch. */
START_TEST(synchronized)
{
    static const char *const normed[] = {"cnn-plain", "cnn-momentum", "cnn-nesterov"};
    check_case(normed[_i % 3], 2 + _i / 3, 1, "synchronized");
}
END_TEST

/* generate_stages.py: whatever the schedule, micro-batches are those that a user would split by
 * hand. */
START_TEST(stages)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "zero_bubble"};
    char output[PATH_MAX], weights[PATH_MAX + 32];
    json_error_t error;
    json_t *golden = json_load_file("stages.json", 0, &error);
    ck_assert_msg(golden != NULL, "stages.json: %s", error.text);
    json_t *document = json_object_get(golden, "job");
    snprintf(output, sizeof output, "%s/stages-%s", checks_scratch(), schedules[_i]);
    json_object_set_new(json_object_get(document, "parallel"), "schedule",
                        json_string(schedules[_i]));
    struct run run = train(document, 3, output);
    compare_losses(&run, json_object_get(golden, "losses"));
    snprintf(weights, sizeof weights, "%s/weights.safetensors", output);
    compare_weights(weights, "stages-final.safetensors");
    json_decref(golden);
}
END_TEST

int main(void)
{
    if (!golden_enter())
        return EXIT_FAILURE;
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("golden");
    TCase *tcase = checks_case(suite, "pytorch", 60);
    tcase_add_loop_test(tcase, one_device, 0, N_CASES);
    tcase_add_loop_test(tcase, two_devices, 0, N_CASES);
    tcase_add_loop_test(tcase, synchronized, 0, 6);
    tcase_add_loop_test(tcase, stages, 0, 3);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
