#include "tests/golden/golden.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/engine/run_job.h"
#include "tests/lib/apart.h"
#include "tests/lib/checks.h"

bool golden_enter(void)
{
    const char *source = getenv("srcdir");
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/tests/golden", source != NULL ? source : ".");
    if (chdir(folder) == 0)
        return true;
    perror(folder);
    return false;
}

json_t *golden_cases(const char *file)
{
    json_error_t error;
    if (!golden_enter())
        return NULL;
    json_t *cases = json_load_file(file, 0, &error);
    if (cases == NULL)
        fprintf(stderr, "%s: %s\n", error.source, error.text);
    return cases;
}

void golden_number(const char *row, const json_t *object, const char *key, double wanted,
                   double tolerance)
{
    double found = json_number_value(json_object_get(object, key));
    ck_assert_msg(fabs(found - wanted) <= tolerance * fabs(wanted), "%s: %s is not %.9g", row, key,
                  wanted);
}

void golden_metrics(const char *output, const json_t *golden, double tolerance)
{
    char *text = run_job_contents(output, "metrics.jsonl", NULL), *rest = text;
    const json_t *losses = json_object_get(golden, "losses"), *lr = json_object_get(golden, "lr");
    size_t n = 0;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0'; n++) {
        json_t *row = json_loads(line, 0, NULL);
        golden_number(line, row, "loss", json_number_value(json_array_get(losses, n)), tolerance);
        if (lr != NULL)
            golden_number(line, row, "lr", json_number_value(json_array_get(lr, n)), 2e-9);
        json_decref(row);
    }
    ck_assert_uint_eq(n, json_array_size(losses));
    free(text);
}

void golden_floats(const char *name, const float *a, const float *b, size_t n, double tolerance)
{
    struct apart apart = apart_floats(a, b, n);
    ck_assert_msg(apart.worst <= tolerance * apart.largest, "%s: differs by %.3g of at most %.3g",
                  name, apart.worst, apart.largest);
}

void golden_curve(const json_t *golden, double tolerance)
{
    static struct run_job run;
    struct err err = ERR_INIT;
    struct job *job = NULL;
    char output[PATH_MAX];
    int rc = job_from_json(json_object_get(golden, "job"), &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    for (int n_devices = 1; n_devices <= 3; n_devices++) {
        snprintf(output, sizeof output, "%s/%s-%d", checks_scratch(), job->name, n_devices);
        run_job_parsed(job, output, n_devices, 0, &run);
        ck_assert_msg(run.rc == 0, "%s: %s: %s", job->name, run.err.path, run.err.message);
        golden_metrics(output, golden, tolerance);
    }
    job_free(job);
}
