/* check_schedule.c: each schedule by value, from PyTorch's documentation. */
#include <math.h>

#include "engine/train/schedule.h"
#include "tests/lib/checks.h"

static void check_rate(const struct job_schedule *schedule, int64_t step, double rate)
{
    double found = schedule_lr(schedule, 0.8, step);
    ck_assert_msg(fabs(found - rate) <= 1e-15, "step %lld: %.17g, wanted %.17g", (long long)step,
                  found, rate);
}

START_TEST(constant)
{
    const struct job_schedule schedule = {.type = SCHEDULE_CONSTANT};
    check_rate(&schedule, 1, 0.8);
    check_rate(&schedule, INT64_C(1) << 40, 0.8);
}
END_TEST

START_TEST(step_lr)
{
    const struct job_schedule schedule = {.type = SCHEDULE_STEP, .step_size = 3, .gamma = 0.5};
    check_rate(&schedule, 1, 0.8);
    check_rate(&schedule, 3, 0.8);
    check_rate(&schedule, 4, 0.4);
    check_rate(&schedule, 6, 0.4);
    check_rate(&schedule, 7, 0.2);
}
END_TEST

/* A milestone that is there twice counts twice, as in PyTorch. */
START_TEST(multi_step_lr)
{
    const struct job_schedule schedule = {
        .type = SCHEDULE_MULTI_STEP, .milestones = {4, (int64_t[]){9, 2, 5, 5}}, .gamma = 0.5};
    check_rate(&schedule, 1, 0.8);
    check_rate(&schedule, 2, 0.8);
    check_rate(&schedule, 3, 0.4);
    check_rate(&schedule, 5, 0.4);
    check_rate(&schedule, 6, 0.1);
    check_rate(&schedule, 10, 0.05);
}
END_TEST

START_TEST(cosine_annealing_lr)
{
    const struct job_schedule schedule = {
        .type = SCHEDULE_COSINE_ANNEALING, .t_max = 4, .eta_min = 0.2};
    check_rate(&schedule, 1, 0.8);
    check_rate(&schedule, 3, 0.5);
    check_rate(&schedule, 5, 0.2);
    check_rate(&schedule, 7, 0.5); /* beyond T_max it rises */
    check_rate(&schedule, 9, 0.8);
    check_rate(&schedule, 11, 0.5);
}
END_TEST

START_TEST(warmup)
{
    const struct job_schedule schedule = {
        .type = SCHEDULE_STEP, .step_size = 2, .gamma = 0.5, .warmup_steps = 4};
    check_rate(&schedule, 1, 0.8 * 0.25);
    check_rate(&schedule, 2, 0.8 * 0.5);
    check_rate(&schedule, 3, 0.4 * 0.75);
    check_rate(&schedule, 4, 0.4);
    check_rate(&schedule, 5, 0.2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train/schedule");
    TCase *tcase = checks_case(suite, "rates", 0);
    tcase_add_test(tcase, constant);
    tcase_add_test(tcase, step_lr);
    tcase_add_test(tcase, multi_step_lr);
    tcase_add_test(tcase, cosine_annealing_lr);
    tcase_add_test(tcase, warmup);
    return checks_run(suite);
}
