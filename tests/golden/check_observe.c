/* What can be seen of each replica, against PyTorch's hooks and DataParallel's losses: the cases of
 * generate_observe.py. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/run_job.h"
#include "tests/golden/golden.h"
#include "tests/lib/checks.h"

static const double tolerance = 2e-5; /* of a tensor's largest magnitude */
static json_t *cases;

static void compare_row(const char *line, const json_t *wanted)
{
    static const char *const keys[] = {"mean", "std", "norm", "max_abs", "nan_count"};
    json_t *row = json_loads(line, 0, NULL);
    double largest = json_number_value(json_array_get(wanted, 6));
    ck_assert_msg(row != NULL, "%s", line);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "step")),
                     json_integer_value(json_array_get(wanted, 0)));
    ck_assert_str_eq(json_string_value(json_object_get(row, "name")),
                     json_string_value(json_array_get(wanted, 1)));
    ck_assert_str_eq(json_string_value(json_object_get(row, "device")),
                     json_string_value(json_array_get(wanted, 2)));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        double found = json_number_value(json_object_get(row, keys[i]));
        double want = json_number_value(json_array_get(wanted, 3 + i));
        double scale = fmax(largest, fabs(want));
        ck_assert_msg(fabs(found - want) <= tolerance * scale, "%s: %s is not %.9g", line, keys[i],
                      want);
    }
    json_decref(row);
}

static void compare_rows(const char *output, const json_t *rows)
{
    char *text = run_job_contents(output, "record.jsonl", NULL), *rest = text, *line;
    size_t n = 0;
    for (; (line = strsep(&rest, "\n")) != NULL && *line != '\0'; n++)
        compare_row(line, json_array_get(rows, n));
    ck_assert_uint_eq(n, json_array_size(rows));
    free(text);
}

/* One mean for each device that had a chunk, in device order. */
static void compare_losses(const char *output, const json_t *wanted)
{
    char *text = run_job_contents(output, "metrics.jsonl", NULL), *rest = text, *line;
    size_t n = 0;
    for (; (line = strsep(&rest, "\n")) != NULL && *line != '\0'; n++) {
        json_t *row = json_loads(line, 0, NULL);
        const json_t *found = json_object_get(row, "replica_losses");
        const json_t *want = json_array_get(wanted, n);
        ck_assert_uint_eq(json_array_size(found), json_array_size(want));
        for (size_t i = 0; i < json_array_size(want); i++) {
            double a = json_number_value(json_array_get(found, i));
            double b = json_number_value(json_array_get(want, i));
            ck_assert_msg(fabs(a - b) <= 1e-5 * fabs(b), "%s: loss %zu is not %.9g", line, i, b);
        }
        json_decref(row);
    }
    ck_assert_uint_eq(n, json_array_size(wanted));
    free(text);
}

START_TEST(observe)
{
    static struct run_job run;
    const json_t *golden = json_array_get(cases, (size_t)_i), *one;
    struct err err = ERR_INIT;
    struct job *job = NULL;
    char output[PATH_MAX];
    size_t i;
    int rc = job_from_json(json_object_get(golden, "job"), &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    json_array_foreach(json_object_get(golden, "runs"), i, one)
    {
        int n_devices = (int)json_integer_value(json_object_get(one, "devices"));
        snprintf(output, sizeof output, "%s/%s-%d", checks_scratch(), job->name, n_devices);
        run_job_parsed(job, output, n_devices, 0, &run);
        ck_assert_msg(run.rc == 0, "%s: %s: %s", job->name, run.err.path, run.err.message);
        compare_rows(output, json_object_get(one, "rows"));
        compare_losses(output, json_object_get(one, "replica_losses"));
    }
    job_free(job);
}
END_TEST

int main(void)
{
    cases = golden_cases("observe.json");
    if (cases == NULL)
        return EXIT_FAILURE;
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("observe");
    TCase *tcase = checks_case(suite, "pytorch", 60);
    tcase_add_loop_test(tcase, observe, 0, (int)json_array_size(cases));
    int status = checks_run(suite);
    checks_scratch_remove();
    json_decref(cases);
    return status;
}
