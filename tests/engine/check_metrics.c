/* check_metrics.c: rows as text, and the cut that a resume makes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/train/metrics.h"
#include "tests/lib/checks.h"

static char text[4096];

static const char *contents(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/metrics.jsonl", checks_scratch());
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void append(const char *more)
{
    char path[512];
    snprintf(path, sizeof path, "%s/metrics.jsonl", checks_scratch());
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    fputs(more, file);
    fclose(file);
}

static struct metrics open_at(int64_t step)
{
    struct err err = ERR_INIT;
    struct metrics metrics;
    ck_assert_msg(metrics_open(checks_scratch(), step, &metrics, &err) == 0, "%s", err.message);
    return metrics;
}

#define STEP1                                                                                      \
    "{\"step\": 1, \"epoch\": 1, \"loss\": 2.30258509, \"lr\": 1e-05, \"samples\": 30, "           \
    "\"seconds\": 0.25, \"replica_losses\": [0.333333333, 4]}\n"
#define VALIDATION1                                                                                \
    "{\"step\": 1, \"epoch\": 1, \"validation_loss\": 0.5, \"accuracy\": 0.987654321}\n"
#define VALIDATION2 "{\"step\": 2, \"epoch\": 2, \"validation_loss\": 0.25}\n"

static void write_all(void)
{
    struct err err;
    struct metrics metrics = open_at(0);
    const struct metrics_step step = {.step = 1,
                                      .epoch = 1,
                                      .loss = 2.302585093,
                                      .lr = 1e-5,
                                      .samples = 30,
                                      .seconds = 0.25,
                                      .replica_losses = {1.0 / 3, 4},
                                      .n_replicas = 2};
    const struct metrics_validation first = {1, 1, 0.5, 0.9876543211}, second = {2, 2, 0.25, NAN};
    ck_assert_int_eq(metrics_write_step(&metrics, &step, &err), 0);
    ck_assert_int_eq(metrics_write_validation(&metrics, &first, &err), 0);
    ck_assert_int_eq(metrics_write_validation(&metrics, &second, &err), 0);
    ck_assert_int_eq(metrics.validated_step, 2);
    ck_assert_int_eq(metrics_sync(&metrics, &err), 0);
    metrics_close(&metrics);
}

START_TEST(rows_have_nine_digits)
{
    write_all();
    ck_assert_str_eq(contents(), STEP1 VALIDATION1 VALIDATION2);
}
END_TEST

static const struct {
    const char *appended;
    int64_t step;
    const char *left;
    int64_t validated;
} cuts[] = {
    {"", 2, STEP1 VALIDATION1 VALIDATION2, 2},
    {"", 1, STEP1 VALIDATION1, 1},
    {"", 0, "", 0},
    {"{\"step\": 2, \"epo", 9, STEP1 VALIDATION1 VALIDATION2, 2}, /* torn */
    {"rubbish\n{\"step\": 2, \"epoch\": 1}\n", 9, STEP1 VALIDATION1 VALIDATION2, 2},
};

START_TEST(a_resume_cuts_what_came_later)
{
    write_all();
    append(cuts[_i].appended);
    struct metrics metrics = open_at(cuts[_i].step);
    ck_assert_str_eq(contents(), cuts[_i].left);
    ck_assert_int_eq(metrics.validated_step, cuts[_i].validated);
    metrics_close(&metrics);
}
END_TEST

START_TEST(the_longest_row_fits)
{
    struct err err;
    struct metrics metrics = open_at(0);
    struct metrics_step step = {.step = INT64_MAX,
                                .epoch = INT64_MAX,
                                .loss = -1.23456789e-300,
                                .lr = -1.23456789e-300,
                                .samples = INT64_MAX,
                                .seconds = -1.23456789e-300,
                                .n_replicas = LIMIT_DEVICES};
    for (int i = 0; i < LIMIT_DEVICES; i++)
        step.replica_losses[i] = -1.23456789e-300;
    ck_assert_int_eq(metrics_write_step(&metrics, &step, &err), 0);
    metrics_close(&metrics);
    size_t size = strlen(contents());
    ck_assert_str_eq(text + size - 3, "]}\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics");
    TCase *tcase = checks_case(suite, "metrics", 0);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, rows_have_nine_digits);
    tcase_add_loop_test(tcase, a_resume_cuts_what_came_later, 0, sizeof cuts / sizeof cuts[0]);
    tcase_add_test(tcase, the_longest_row_fits);
    return checks_run(suite);
}
