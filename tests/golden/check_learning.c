/* Losses, optimizers and schedules against PyTorch: the cases of generate_learning.py, 50 steps
 * each, trained here on one device and on several, whose chunks are unequal.
 *
 * Each tensor must agree to the case's tolerance in max|a-b| / max|b|, losses to ten times it, the
 * learning rate to the digits that metrics.jsonl has. The paths in the documents are relative to
 * tests/golden, where the test runs. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "tests/engine/run_job.h"
#include "tests/golden/golden.h"
#include "tests/lib/checks.h"

enum { MAX_DEVICES = 3 };

static json_t *cases; /* learning.json, read before the tests fork */

static void compare_weights(const char *output, const char *name, double tolerance)
{
    struct safetensors *ours, *wanted;
    struct err err = ERR_INIT;
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/weights.safetensors", output);
    ck_assert_msg(safetensors_open(path, &ours, &err) == 0, "%s", err.message);
    ck_assert_int_eq(safetensors_open("learning.safetensors", &wanted, &err), 0);
    for (size_t i = 0; i < safetensors_count(ours); i++) {
        const struct safetensor *x = safetensors_at(ours, i);
        snprintf(path, sizeof path, "%s/%s", name, x->name);
        const struct safetensor *y = safetensors_find(wanted, path);
        ck_assert_msg(y != NULL && shape_equal(&x->shape, &y->shape), "%s", path);
        if (y->dtype == DTYPE_F32)
            golden_floats(path, x->data, y->data, y->bytes / sizeof(float), tolerance);
        else
            ck_assert_mem_eq(x->data, y->data, y->bytes);
    }
    safetensors_close(ours);
    safetensors_close(wanted);
}

static bool runs_on(const json_t *golden, int n_devices)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(golden, "devices"), i, entry)
    {
        if (json_integer_value(entry) == n_devices)
            return true;
    }
    return false;
}

static void run_to(struct job *job, int64_t steps, int n_devices, const char *output)
{
    static struct run_job run;
    job->train.max_steps = steps;
    run_job_parsed(job, output, n_devices, 0, &run);
    ck_assert_msg(run.rc == 0, "%s: %s: %s", job->name, run.err.path, run.err.message);
}

/* In one run, and in two, of which the second goes on where the first ended: the same bits. */
static void check_case(const json_t *golden, int n_devices)
{
    struct job *job = NULL;
    struct err err = ERR_INIT;
    char output[PATH_MAX], parted[PATH_MAX + 8];
    int rc = job_from_json(json_object_get(golden, "job"), &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    int64_t steps = job->train.max_steps;
    snprintf(output, sizeof output, "%s/%s-%d", checks_scratch(), job->name, n_devices);
    snprintf(parted, sizeof parted, "%s-parted", output);
    run_to(job, steps, n_devices, output);
    job->checkpoint.every = (struct job_every){EVERY_STEPS, steps / 2 + 2};
    run_to(job, steps / 2 + 2, n_devices, parted);
    run_to(job, steps, n_devices, parted);
    run_job_same_file(output, parted, "weights.safetensors");
    double tolerance = json_number_value(json_object_get(golden, "tolerance"));
    golden_metrics(output, golden, 10 * tolerance);
    compare_weights(output, job->name, tolerance);
    job_free(job);
}

/* One test a case: all of its numbers of devices. */
START_TEST(learning)
{
    for (int n = 1; n <= MAX_DEVICES; n++)
        if (runs_on(json_array_get(cases, (size_t)_i), n))
            check_case(json_array_get(cases, (size_t)_i), n);
}
END_TEST

int main(void)
{
    cases = golden_cases("learning.json");
    if (cases == NULL)
        return EXIT_FAILURE;
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("learning");
    TCase *tcase = checks_case(suite, "pytorch", 60);
    tcase_add_loop_test(tcase, learning, 0, (int)json_array_size(cases));
    int status = checks_run(suite);
    checks_scratch_remove();
    json_decref(cases);
    return status;
}
