/* check_loops.c: the kernels that are loops of our own against their references: pooling, element
 * by element. (Losses and updates: check_losses.c, check_updates.c.) */
#include <math.h>

#include "engine/ops/attr.h"
#include "tests/engine/kernel_test.h"

/* Pooling */

static const struct pool_row {
    struct shape x;
    struct max_pool2d_attr attr; /* kernel_size, stride, padding, dilation, padding_end */
    int64_t oh, ow;
} pool_rows[] = {
    {{4, {2, 1, 8, 8}}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, {0, 0}}, 4, 4},
    {{4, {1, 3, 7, 5}}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, 4, 3},
    {{4, {2, 16, 9, 7}}, {{3, 2}, {1, 2}, {1, 1}, {1, 1}, {1, 1}}, 9, 4},
    {{4, {2, 20, 6, 6}}, {{3, 3}, {2, 2}, {0, 0}, {1, 1}, {1, 1}}, 3, 3}, /* ceil_mode */
    {{4, {3, 33, 9, 9}}, {{3, 3}, {2, 2}, {1, 1}, {2, 2}, {1, 1}}, 4, 4}, /* dilation */
    {{4, {2, 5, 4, 4}}, {{4, 4}, {4, 4}, {0, 0}, {1, 1}, {0, 0}}, 1, 1},
    {{4, {1, 16, 1, 5}}, {{2, 2}, {1, 1}, {1, 0}, {2, 1}, {1, 0}}, 1, 4}, /* empty windows */
    {{4, {2, 5, 1, 5}}, {{2, 2}, {1, 1}, {1, 0}, {2, 1}, {1, 0}}, 1, 4},  /* and padded channels */
    {{4, {1, 2, 20, 20}}, {{17, 17}, {3, 3}, {8, 8}, {1, 1}, {8, 8}}, 7, 7},
    /* Far larger than the plane: more positions in a window than 32 bits can number. */
    {{4, {2, 3, 2, 3}},
     {{1 << 17, 1 << 17}, {1, 1}, {1 << 16, 1 << 16}, {1, 1}, {1 << 16, 1 << 16}},
     3,
     4},
    {{4, {1, 5, 2, 2}},
     {{INT32_MAX, INT32_MAX}, {1, 1}, {INT32_MAX / 2, INT32_MAX / 2}, {1, 1}, {1 << 30, 1 << 30}},
     2,
     2},
};

/* Forward, then the gradient with the workspace that the forward left. */
static void check_max_pool(const struct pool_row *r, int64_t arrival, const float *x)
{
    struct shape y = SHAPE(r->x.dim[0], r->x.dim[1], r->oh, r->ow);
    struct kernel_test forward = {.op = "max_pool2d", .attr = &r->attr, .override = x};
    forward.arrival_block = arrival;
    forward.in[0] = kernel_test_activation(r->x);
    forward.out[0] = kernel_test_activation(y);
    forward.out[1] =
        (struct tensor){.shape = y, .fill = FILL_NORMAL, .dtype = DTYPE_U8, .opaque = true};
    kernel_test_run(&forward);

    struct kernel_test grad = {.op = "max_pool2d_grad", .attr = &r->attr};
    grad.in[0] = kernel_test_activation(y);
    grad.in[1] = forward.out[1];
    grad.out[0] = kernel_test_activation(r->x);
    kernel_test_run(&grad);
    kernel_test_done(&grad);
    kernel_test_done(&forward);

    struct kernel_test eval = {.op = "max_pool2d", .attr = &r->attr, .override = x};
    eval.arrival_block = arrival;
    eval.in[0] = kernel_test_activation(r->x);
    eval.out[0] = kernel_test_activation(y);
    kernel_test_run(&eval);
    kernel_test_done(&eval);
}

static void max_pool2d_row(int row)
{
    for (int i = 0; i < test_backend_n_arrivals; i++)
        check_max_pool(&pool_rows[row], test_backend_arrivals[i], NULL);
}
ALL_ROWS(max_pool2d, pool_rows)

/* Ties, NaN and minus infinity. */
START_TEST(max_pool2d_special)
{
    static const struct pool_row row = {
        {4, {1, 1, 4, 6}}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, {0, 0}}, 2, 3};
    static const float x[24] = {1, 1,         0,         NAN,       -INFINITY, -INFINITY, //
                                1, 1,         NAN,       7,         -INFINITY, -INFINITY, //
                                0, -0.0f,     INFINITY,  1,         -1,        -1,        //
                                0, -INFINITY, -INFINITY, -INFINITY, -1,        -2};
    for (int i = 0; i < test_backend_n_arrivals; i++)
        check_max_pool(&row, test_backend_arrivals[i], x);
}
END_TEST

static const struct average_row {
    struct shape x;
    int64_t oh, ow;
} average_rows[] = {
    {{4, {2, 1, 8, 8}}, 1, 1},  {{4, {1, 3, 7, 5}}, 3, 2},  {{4, {2, 20, 5, 7}}, 2, 7},
    {{4, {2, 16, 3, 2}}, 5, 4}, {{4, {1, 33, 6, 6}}, 6, 6}, {{4, {2, 64, 4, 4}}, 1, 1},
};

static void adaptive_avg_pool2d_row(int row)
{
    const struct average_row *r = &average_rows[row];
    struct shape y = SHAPE(r->x.dim[0], r->x.dim[1], r->oh, r->ow);
    struct kernel_test test = {.op = "adaptive_avg_pool2d"};
    test.in[0] = kernel_test_activation(r->x);
    test.out[0] = kernel_test_activation(y);
    kernel_test_arrivals(&test);
    struct kernel_test grad = {.op = "adaptive_avg_pool2d_grad"};
    grad.in[0] = kernel_test_activation(y);
    grad.out[0] = kernel_test_activation(r->x);
    kernel_test_arrivals(&grad);
}
ALL_ROWS(adaptive_avg_pool2d, average_rows)

/* Element by element */

static const struct shape shapes[] = {
    {2, {1, 1}},        {2, {3, 5}},         {4, {2, 3, 5, 7}},  {4, {1, 20, 3, 3}},
    {4, {2, 16, 4, 4}}, {4, {3, 33, 17, 9}}, {3, {2, 100, 101}},
};

static void relu_row(int row)
{
    struct kernel_test test = {.op = "relu"};
    test.in[0] = test.out[0] = kernel_test_activation(shapes[row]);
    kernel_test_arrivals(&test);
    struct kernel_test grad = {.op = "relu_grad"};
    grad.in[0] = grad.in[1] = grad.out[0] = kernel_test_activation(shapes[row]);
    kernel_test_arrivals(&grad);
}
ALL_ROWS(relu, shapes)

START_TEST(relu_nan)
{
    static const float x[4] = {NAN, -1, INFINITY, -INFINITY};
    struct kernel_test test = {.op = "relu", .override = x};
    test.in[0] = test.out[0] = kernel_test_activation(SHAPE(2, 2));
    kernel_test_run(&test);
    ck_assert(isnan(kernel_test_element(&test.out[0], 0)));
    kernel_test_done(&test);
}
END_TEST

static void add_row(int row)
{
    struct kernel_test test = {.op = "add"};
    test.in[0] = test.in[1] = test.out[0] = kernel_test_activation(shapes[row]);
    kernel_test_arrivals(&test);
    test.in[2] = test.in[3] = kernel_test_activation(shapes[row]);
    kernel_test_arrivals(&test);
}
ALL_ROWS(add, shapes)

static void cast_row(int row)
{
    struct kernel_test test = {.op = "cast"};
    test.in[0] = test.out[0] = kernel_test_activation(shapes[row]);
    test.out[0].dtype = DTYPE_BF16;
    kernel_test_arrivals(&test);
    test.in[0].dtype = DTYPE_BF16;
    test.out[0].dtype = DTYPE_F32;
    kernel_test_arrivals(&test);
}
ALL_ROWS(cast, shapes)

/* Halfway goes to even; what is not finite stays. */
START_TEST(cast_special)
{
    static const float x[] = {NAN, INFINITY, -INFINITY, 1.00390625f, 1.01171875f, -0.0f, 1e-40f, 0};
    static const double want[] = {NAN, INFINITY, -INFINITY, 1, 1.015625, -0.0};
    struct kernel_test test = {.op = "cast", .override = x};
    test.in[0] = test.out[0] = kernel_test_activation(SHAPE(2, 4));
    test.out[0].dtype = DTYPE_BF16;
    kernel_test_run(&test);
    ck_assert(isnan(kernel_test_element(&test.out[0], 0)));
    for (int i = 1; i < ROWS(want); i++)
        ck_assert_double_eq(kernel_test_element(&test.out[0], i), want[i]);
    kernel_test_done(&test);
}
END_TEST

static void dropout_row(int row)
{
    static const double rates[] = {0, 0.25, 0.5, 1};
    for (int i = 0; i < ROWS(rates); i++) {
        struct dropout_attr attr = {.p = rates[i], .layer = 3};
        struct kernel_test test = {.op = "dropout", .attr = &attr};
        test.step = (struct step){.seed = 11, .number = 5, .first_sample = 60};
        test.in[0] = test.out[0] = kernel_test_activation(shapes[row]);
        kernel_test_arrivals(&test);
        test.op = "dropout_grad";
        kernel_test_arrivals(&test);
    }
}
ALL_ROWS(dropout, shapes)

/* Two chunks of a batch draw what the whole batch draws. */
START_TEST(dropout_chunks)
{
    struct dropout_attr attr = {.p = 0.5, .layer = 1};
    struct kernel_test whole = {.op = "dropout", .attr = &attr};
    whole.step = (struct step){.seed = 2, .number = 9, .first_sample = 30};
    whole.in[0] = whole.out[0] = (struct tensor){.shape = SHAPE(5, 7), .fill = FILL_POSITIVE};
    kernel_test_run(&whole);
    struct kernel_test rest = whole;
    rest.step.first_sample = 33;
    rest.in[0] = rest.out[0] = (struct tensor){.shape = SHAPE(2, 7), .fill = FILL_POSITIVE};
    kernel_test_run(&rest);
    for (int i = 0; i < 14; i++)
        ck_assert_int_eq(kernel_test_element(&whole.out[0], 3 * 7 + i) == 0,
                         kernel_test_element(&rest.out[0], i) == 0);
    kernel_test_done(&whole);
    kernel_test_done(&rest);
}
END_TEST

START_TEST(allocations)
{
    const struct pool_row *r = &pool_rows[0];
    struct kernel_test pool = {.op = "max_pool2d", .attr = &r->attr};
    pool.in[0] = kernel_test_activation(r->x);
    pool.out[0] = kernel_test_activation(SHAPE(r->x.dim[0], r->x.dim[1], r->oh, r->ow));
    kernel_test_allocations(&pool);

    struct kernel_test sum = {.op = "add"};
    sum.in[0] = sum.in[1] = sum.out[0] = kernel_test_activation(shapes[0]);
    kernel_test_allocations(&sum);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        allocations,
        max_pool2d,
        max_pool2d_special,
        adaptive_avg_pool2d,
        relu,
        relu_nan,
        add,
        cast,
        cast_special,
        dropout,
        dropout_chunks,
    };
    return kernel_test_main("loops", tests, ROWS(tests));
}
