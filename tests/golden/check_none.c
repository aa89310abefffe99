/* Evaluations under reduction none against PyTorch: the cases of generate_none.py, on one device
 * and on several, whose chunks are unequal. The paths in the documents are relative to
 * tests/golden. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/run_job.h"
#include "tests/golden/golden.h"
#include "tests/lib/checks.h"

enum { HEADER = 128 };

static const struct {
    int n_devices;
    const char *parallel; /* NULL: replicas */
} ways[] = {
    {1, NULL},
    {2, NULL},
    {3, NULL},
    {2, "{\"mode\": \"stages\", \"devices\": 2, \"replicas\": 2, \"split_size\": 2}"},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static json_t *cases; /* none.json, read before the tests fork */

static struct job *parse(const json_t *golden, const char *parallel)
{
    struct err err = ERR_INIT;
    struct job *job = NULL;
    json_t *document = json_deep_copy(json_object_get(golden, "job"));
    if (parallel != NULL)
        json_object_set_new(document, "parallel", json_loads(parallel, 0, NULL));
    int rc = job_from_json(document, &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    json_decref(document);
    return job;
}

static double evaluate(struct job *job, int n_devices, const char *output)
{
    static struct run_job run;
    run_job_parsed(job, output, n_devices, 0, &run);
    ck_assert_msg(run.rc == 0, "%s: %s", run.err.path, run.err.message);
    return run.done.validation_loss;
}

static void compare(const char *output, const json_t *wanted)
{
    size_t size, n = json_array_size(wanted), i;
    json_t *loss;
    char *npy = run_job_contents(output, "losses.npy", &size);
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_eq(size, HEADER + n * sizeof(float));
    const float *losses = (const float *)(npy + HEADER);
    json_array_foreach(wanted, i, loss)
    {
        double b = json_number_value(loss), a = (double)losses[i];
        ck_assert_msg(fabs(a - b) <= 1e-5 * fmax(fabs(b), 0.1), "sample %zu: %.9g, PyTorch %.9g", i,
                      a, b);
    }
    free(npy);
}

/* Beside the losses the mean is what it is under `mean`. */
START_TEST(a_loss_a_sample)
{
    const json_t *golden = json_array_get(cases, (size_t)(_i / WAYS));
    char none[512], mean[512], losses[600];
    snprintf(none, sizeof none, "%s/none-%d", checks_scratch(), _i);
    snprintf(mean, sizeof mean, "%s/mean-%d", checks_scratch(), _i);
    struct job *job = parse(golden, ways[_i % WAYS].parallel);
    double loss = evaluate(job, ways[_i % WAYS].n_devices, none);
    compare(none, json_object_get(golden, "losses"));
    job->loss.reduction = REDUCTION_MEAN;
    ck_assert_double_eq_tol(evaluate(job, ways[_i % WAYS].n_devices, mean), loss, 1e-12 * loss);
    snprintf(losses, sizeof losses, "%s/losses.npy", mean);
    ck_assert_ptr_null(fopen(losses, "r"));
    job_free(job);
}
END_TEST

int main(void)
{
    cases = golden_cases("none.json");
    if (cases == NULL)
        return EXIT_FAILURE;
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("none");
    TCase *tcase = checks_case(suite, "none", 60);
    tcase_add_loop_test(tcase, a_loss_a_sample, 0, WAYS * (int)json_array_size(cases));
    int status = checks_run(suite);
    checks_scratch_remove();
    json_decref(cases);
    return status;
}
