/* early_stop: ends where the validation loss has stayed, keeps the best weights, and decides the
 * same after a resume. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

/* So fast that the loss on data of noise soon grows. */
static const char patch[] = "{'train': {'epochs': 40, 'early_stop': {'patience': 3}},"
                            " 'optimizer': {'lr': 0.3}}";
static struct run_job run;

static const char *place(const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", checks_scratch(), name);
    return path;
}

/* The validation losses of metrics.jsonl, in order. */
static int losses_of(const char *output, double *ret_losses, int most)
{
    char *text = run_job_contents(output, "metrics.jsonl", NULL);
    int n = 0;
    for (char *line = strtok(text, "\n"); line != NULL && n < most; line = strtok(NULL, "\n")) {
        const char *at = strstr(line, "\"validation_loss\": ");
        if (at != NULL)
            ret_losses[n++] = strtod(at + strlen("\"validation_loss\": "), NULL);
    }
    free(text);
    return n;
}

START_TEST(stops_after_patience_and_keeps_the_best)
{
    const char *output = place("out"), *best = place("best");
    double losses[64];
    int smallest = 0;
    char shorter[256];
    run_job_well(patch, output, 2, &run);
    int n = losses_of(output, losses, 64);
    for (int i = 1; i < n; i++)
        smallest = losses[i] < losses[smallest] ? i : smallest;
    ck_assert_int_lt(n, 40);
    ck_assert_int_eq(n - 1 - smallest, 3); /* epochs, each with a validation */
    ck_assert_int_eq(run.done.step, 3 * n);

    /* The best weights are those of a job that ends there. */
    snprintf(shorter, sizeof shorter, "{'train': {'epochs': %d}, 'optimizer': {'lr': 0.3}}",
             smallest + 1);
    run_job_well(shorter, best, 2, &run);
    size_t size, wanted;
    char *kept = run_job_contents(output, "best.safetensors", &size);
    char *made = run_job_contents(best, "weights.safetensors", &wanted);
    ck_assert(size > 0 && size == wanted && memcmp(kept, made, size) == 0);
    free(kept);
    free(made);
    checks_scratch_remove();
}
END_TEST

START_TEST(decides_the_same_after_a_resume)
{
    const char *whole = place("whole"), *parts = place("parts");
    run_job_well(patch, whole, 1, &run);
    int64_t end = run.done.step;
    for (int64_t step = 4; step < end; step += 7) {
        run_job(patch, parts, 1, step, &run);
        ck_assert_int_eq(run.rc, ERR_CANCELLED);
    }
    run_job_well(patch, parts, 1, &run);
    ck_assert_int_eq(run.done.step, end);
    run_job_same_file(whole, parts, "weights.safetensors");
    run_job_same_file(whole, parts, "best.safetensors");
    run_job_well(patch, parts, 1, &run); /* it has ended: nothing is trained */
    ck_assert_int_eq(run.reports[REPORT_PROGRESS], 0);
    run_job_same_file(whole, parts, "weights.safetensors");
    checks_scratch_remove();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("early_stop");
    TCase *tcase = checks_case(suite, "early_stop", 60);
    tcase_add_test(tcase, stops_after_patience_and_keeps_the_best);
    tcase_add_test(tcase, decides_the_same_after_a_resume);
    return checks_run(suite);
}
