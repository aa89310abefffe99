/* check_statistics.c: the statistics of a tensor, against the reference and by value. */
#include <math.h>

#include "engine/ops/attr.h"
#include "tests/engine/kernel_test.h"

static const struct statistics_attr plain = {.scaled = false}, scaled = {.scaled = true};

static const struct shape shapes[] = {
    {1, {1}},       {1, {5}},           {2, {15, 5}},       {2, {1, 70000}},
    {3, {2, 3, 8}}, {4, {3, 33, 7, 9}}, {4, {2, 16, 5, 5}},
};

static void statistics_row(int row)
{
    const struct statistics_attr *const attrs[] = {&plain, &scaled};
    for (int i = 0; i < ROWS(attrs); i++) {
        struct kernel_test test = {.op = "statistics", .attr = attrs[i]};
        test.step = (struct step){.record = true, .gradient_scale = 0.125};
        test.in[0] = kernel_test_activation(shapes[row]);
        test.out[0] = (struct tensor){
            .shape = SHAPE(STATISTIC_COUNT), .fill = FILL_NORMAL, .dtype = DTYPE_F64};
        kernel_test_arrivals(&test);
    }
}
ALL_ROWS(statistics, shapes)

#define NOT_A_NUMBER __builtin_nanf("")

static const struct {
    float x[4];
    int64_t n;
    double want[STATISTIC_COUNT]; /* mean, standard deviation, norm, largest magnitude, NaNs */
} values[] = {
    {{1, 2, 3, -6}, 4, {0, 4.08248290, 7.07106781, 6, 0}},
    {{-2}, 1, {-2, NOT_A_NUMBER, 2, 2, 0}},
    {{1e6f, 1e6f + 1, 1e6f + 2}, 3, {1000001, 1, 1732052.5396, 1000002, 0}},
    {{1, NOT_A_NUMBER, 3, NOT_A_NUMBER},
     4,
     {NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, 2}},
    {{INFINITY, 1}, 2, {INFINITY, NOT_A_NUMBER, INFINITY, INFINITY, 0}},
};

START_TEST(by_value)
{
    for (int row = 0; row < ROWS(values); row++) {
        struct kernel_test test = {
            .op = "statistics", .attr = &plain, .override = values[row].x, .step.record = true};
        test.in[0] = kernel_test_activation(SHAPE(values[row].n));
        test.out[0] = (struct tensor){
            .shape = SHAPE(STATISTIC_COUNT), .fill = FILL_NORMAL, .dtype = DTYPE_F64};
        kernel_test_run(&test);
        const double *made = test.out[0].memory;
        for (int i = 0; i < STATISTIC_COUNT; i++) {
            double want = values[row].want[i];
            bool same = isnan(want) ? isnan(made[i])
                                    : made[i] == want || fabs(made[i] - want) <= 1e-8 * fabs(want);
            ck_assert_msg(same, "row %d: statistic %d is %.10g, not %.10g", row, i, made[i], want);
        }
        kernel_test_done(&test);
    }
}
END_TEST

START_TEST(allocations)
{
    struct kernel_test test = {.op = "statistics", .attr = &plain};
    test.in[0] = kernel_test_activation(shapes[0]);
    test.out[0] =
        (struct tensor){.shape = SHAPE(STATISTIC_COUNT), .fill = FILL_NORMAL, .dtype = DTYPE_F64};
    kernel_test_allocations(&test);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {statistics, by_value, allocations};
    return kernel_test_main("statistics", tests, ROWS(tests));
}
