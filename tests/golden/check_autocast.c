/* check_autocast.c: jobs in bf16 against PyTorch under torch.autocast: generate_autocast.py. Both
 * round, at places that are not quite the same (the bias, sums of gradients), so their losses agree
 * to the steps of BF16. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/engine/low.h"
#include "tests/engine/run_job.h"
#include "tests/golden/golden.h"
#include "tests/lib/checks.h"

static json_t *cases;

START_TEST(bf16_learns_as_autocast_does)
{
    static struct run_job run;
    struct err err = ERR_INIT;
    struct job *job = NULL;
    char output[PATH_MAX];
    const json_t *golden = json_array_get(cases, (size_t)_i);
    int rc = job_from_json(json_object_get(golden, "job"), &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    snprintf(output, sizeof output, "%s/%s", checks_scratch(), job->name);
    run_job_parsed(job, output, 1, 0, &run);
    ck_assert_msg(run.rc == 0, "%s: %s: %s", job->name, run.err.path, run.err.message);
    golden_metrics(output, golden, 3e-3);
    job_free(job);
}
END_TEST

int main(void)
{
    static const char *const name = "bf16_learns_as_autocast_does";
    if (low_missing() != NULL)
        return checks_skip(&name, 1, low_missing());
    cases = golden_cases("autocast.json");
    if (cases == NULL)
        return EXIT_FAILURE;
    Suite *suite = suite_create("autocast");
    TCase *tcase = checks_case(suite, "pytorch", 60);
    tcase_add_loop_test(tcase, bf16_learns_as_autocast_does, 0, (int)json_array_size(cases));
    int status = checks_run(suite);
    json_decref(cases);
    return status;
}
