/* check_example.c: the job that the README shows, on two devices, on real data. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/train/trainer.h"
#include "tests/lib/checks.h"

static struct report done;

static void hear(void *context, const struct report *report)
{
    (void)context;
    if (report->type == REPORT_DONE) {
        done = *report;
        done.confusion = json_deep_copy(report->confusion);
    }
}

static void hear_line(void *context, const char *line)
{
    (void)context;
    (void)line;
}

static struct job *load(const char *path)
{
    char text[1 << 14];
    struct err err = ERR_INIT;
    struct job *job = NULL;
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is missing", path);
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    ck_assert_msg(job_parse(text, size, &job, &err) == 0, "%s: %s", err.path, err.message);
    return job;
}

static const char *const examples[] = {"examples/digits-cnn.json", "examples/digits-stages.json"};

START_TEST(digits_cnn_reads_digits)
{
    static volatile sig_atomic_t stop;
    const struct device_config devices[] = {{.name = "cpu:0", .n_threads = 1},
                                            {.name = "cpu:1", .n_threads = 1}};
    struct err err = ERR_INIT;
    const char *srcdir = getenv("srcdir");
    ck_assert_int_eq(chdir(srcdir != NULL ? srcdir : "."), 0);
    struct job *job = load(examples[_i]);
    const struct trainer_config config = {
        .job = job,
        .backend = &backend_cpu,
        .devices = devices,
        .n_devices = 2,
        .output = checks_scratch(),
        .stop = &stop,
        .sink = {.report = hear, .say = hear_line},
    };
    ck_assert_int_eq(job->parallel.n_devices, 2);
    int rc = trainer_run(&config, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_double_ge(done.accuracy, 0.97);

    /* The table counts the same: its diagonal is what was right. */
    json_int_t right = 0, all = 0;
    for (size_t i = 0; i < 10; i++)
        for (size_t j = 0; j < 10; j++) {
            json_int_t n = json_integer_value(json_array_get(json_array_get(done.confusion, i), j));
            all += n;
            right += i == j ? n : 0;
        }
    ck_assert_int_eq(all, 359);
    ck_assert_double_eq_tol((double)right / (double)all, done.accuracy, 1e-12);
    json_decref(done.confusion);
    job_free(job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("example");
    TCase *tcase = checks_case(suite, "example", 120);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, digits_cnn_reads_digits, 0, 2);
    return checks_run(suite);
}
