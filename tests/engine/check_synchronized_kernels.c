/* check_synchronized_kernels.c: the parts of a BatchNorm over several replicas against their
 * references. */
#include <math.h>
#include <stdlib.h>

#include "engine/ops/attr.h"
#include "tests/engine/kernel_test.h"
#include "tests/engine/models.h"

static const struct batch_norm_attr attr = {1e-5, 0.3};

static const struct shape shapes[] = {
    {4, {4, 1, 5, 5}},  {4, {2, 3, 7, 4}},  {4, {3, 16, 3, 5}},  {4, {4, 20, 5, 5}},
    {4, {1, 33, 2, 3}}, {4, {2, 64, 9, 8}}, {4, {5, 17, 1, 1}},  {2, {3, 5}},
    {2, {64, 128}},     {2, {7, 33}},       {2, {9, 20}},        {2, {3, 1}},
    {2, {1, 4}},        {4, {1, 3, 1, 1}},  {4, {2, 5, 40, 33}},
};

static void batch_norm_statistics_row(int row)
{
    struct kernel_test test = {.op = "batch_norm_statistics"};
    test.in[0] = kernel_test_activation(shapes[row]);
    test.out[0] = kernel_test_activation(SHAPE(2 * shapes[row].dim[1] + 1));
    kernel_test_arrivals(&test);
}
ALL_ROWS(batch_norm_statistics, shapes)

static void batch_norm_sums_row(int row)
{
    struct shape channels = SHAPE(shapes[row].dim[1]);
    struct kernel_test test = {.op = "batch_norm_sums", .attr = &attr};
    test.in[0] = test.in[1] = kernel_test_activation(shapes[row]);
    test.in[2] = test.in[3] = kernel_test_activation(channels);
    test.in[3].fill = FILL_POSITIVE;
    test.out[0] = kernel_test_activation(SHAPE(2, channels.dim[0]));
    kernel_test_arrivals(&test);
    test.out[1] = test.out[2] = kernel_test_variable(channels, FILL_NORMAL);
    kernel_test_arrivals(&test);
}
ALL_ROWS(batch_norm_sums, shapes)

static void batch_norm_sums_grad_row(int row)
{
    struct shape channels = SHAPE(shapes[row].dim[1]);
    struct kernel_test test = {.op = "batch_norm_sums_grad", .attr = &attr};
    test.in[0] = test.in[1] = kernel_test_activation(shapes[row]);
    test.in[3] = test.in[4] = kernel_test_activation(channels);
    test.in[4].fill = FILL_POSITIVE;
    test.in[5] = kernel_test_activation(SHAPE(2, channels.dim[0]));
    test.in[6] = kernel_test_activation(SHAPE(1));
    test.in[6].fill = FILL_POSITIVE;
    test.out[0] = kernel_test_activation(shapes[row]);
    kernel_test_arrivals(&test);
    test.in[2] = kernel_test_variable(channels, FILL_POSITIVE);
    kernel_test_arrivals(&test);
}
ALL_ROWS(batch_norm_sums_grad, shapes)

enum { CHANNELS = 5, REPLICAS = 4 };
static const double counts[][REPLICAS] = {
    {12, 12, 12, 12}, {7, 7, 7, 3}, {3, 1, 0, 0}, {1, 1, 0, 0}, {1, 0, 1, 6}};

/* Rows of a replica that rests are zero, whole. */
static double *rows(const double *count)
{
    double *all = calloc(REPLICAS * (2 * CHANNELS + 1), sizeof *all);
    float noise[2 * CHANNELS];
    for (int r = 0; r < REPLICAS; r++) {
        double *row = all + r * (2 * CHANNELS + 1);
        models_fill(noise, 2 * CHANNELS, (uint64_t)r);
        row[0] = count[r];
        for (int i = 0; i < 2 * CHANNELS && count[r] > 0; i++)
            row[1 + i] = (double)(i < CHANNELS ? noise[i] : fabsf(noise[i]) * (float)count[r]);
    }
    return all;
}

static void batch_norm_combine_row(int row)
{
    for (int tracked = 0; tracked < 2; tracked++) {
        struct kernel_test test = {.op = "batch_norm_combine", .attr = &attr};
        test.in[0] = kernel_test_activation(SHAPE(REPLICAS, 2 * CHANNELS + 1));
        test.in[0].reference = rows(counts[row]);
        if (tracked) {
            test.in[1] = kernel_test_mutated(SHAPE(CHANNELS), FILL_NORMAL);
            test.in[2] = kernel_test_mutated(SHAPE(CHANNELS), FILL_POSITIVE);
            test.in[3] = kernel_test_mutated((struct shape){0, {0}}, FILL_ZERO);
            test.in[3].dtype = DTYPE_I64;
        }
        test.out[0] = test.out[1] = kernel_test_activation(SHAPE(CHANNELS));
        test.out[2] = kernel_test_activation(SHAPE(1));
        kernel_test_run(&test);
        kernel_test_done(&test);
    }
}
ALL_ROWS(batch_norm_combine, counts)

START_TEST(replicas_alone)
{
    struct kernel_test gather = {.op = "gather_replicas"};
    gather.in[0] = kernel_test_activation(SHAPE(7));
    gather.out[0] = kernel_test_activation(SHAPE(1, 7));
    kernel_test_run(&gather);
    kernel_test_done(&gather);
    struct kernel_test sum = {.op = "sum_replicas"};
    sum.in[0] = kernel_test_activation(SHAPE(2, 7));
    sum.out[0] = kernel_test_activation(SHAPE(2, 7));
    kernel_test_run(&sum);
    kernel_test_done(&sum);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        batch_norm_statistics, batch_norm_sums, batch_norm_sums_grad,
        batch_norm_combine,    replicas_alone,
    };
    return kernel_test_main("synchronized kernels", tests, ROWS(tests));
}
