/* check_kernels.c: every CPU kernel against its reference, over shapes that a user can write.
 *
 * Each row runs with inputs that arrive plain, and as blocks of 16 and 8 channels; the suite runs
 * on teams of one and of two threads.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/backend/cpu/layout.h"
#include "engine/ops/attr.h"
#include "tests/engine/kernel_test.h"
#include "tests/lib/checks.h"

#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

static const int64_t arrivals[] = {0, 16, 8};

/* Runs the test once an arrival. */
static void run_arrivals(const struct kernel_test *test)
{
    for (int i = 0; i < ROWS(arrivals); i++) {
        struct kernel_test one = *test;
        one.arrival_block = arrivals[i];
        kernel_test_run(&one);
        kernel_test_done(&one);
    }
}

static struct tensor activation(struct shape shape)
{
    return (struct tensor){.shape = shape, .fill = FILL_NORMAL};
}

static struct tensor variable(struct shape shape, enum fill fill)
{
    return (struct tensor){.shape = shape, .fill = fill, .variable = true};
}

static struct tensor mutated(struct shape shape, enum fill fill)
{
    return (struct tensor){.shape = shape, .fill = fill, .variable = true, .mutated = true};
}

/* Conv2d */

static const struct conv_row {
    int64_t n, c, h, w, o, kernel[2];
    struct conv2d_attr attr; /* stride, padding, dilation, groups */
    bool bias;
} conv_rows[] = {
    {1, 1, 5, 5, 1, {1, 1}, {{1, 1}, {0, 0}, {1, 1}, 1}, true},
    {1, 1, 8, 8, 32, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}, true},
    {3, 3, 7, 9, 5, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}, true},
    {2, 3, 17, 15, 16, {7, 7}, {{2, 2}, {3, 3}, {1, 1}, 1}, false},
    {2, 5, 7, 9, 20, {3, 2}, {{1, 2}, {1, 0}, {1, 1}, 1}, true},
    {2, 16, 6, 6, 33, {3, 3}, {{2, 1}, {1, 1}, {1, 1}, 1}, false},
    {2, 33, 7, 9, 20, {3, 3}, {{2, 2}, {1, 1}, {2, 2}, 1}, true},
    {2, 20, 9, 5, 16, {1, 1}, {{2, 2}, {0, 0}, {1, 1}, 1}, true},
    {2, 32, 8, 8, 64, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}, true},
    {2, 32, 8, 8, 32, {3, 3}, {{1, 1}, {2, 2}, {2, 2}, 1}, true},
    {1, 17, 1, 1, 33, {1, 1}, {{1, 1}, {0, 0}, {1, 1}, 1}, true},
    {2, 16, 9, 9, 16, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, 16}, true},
    {2, 20, 9, 9, 20, {3, 3}, {{2, 2}, {2, 2}, {2, 2}, 20}, true},
    {2, 6, 9, 9, 12, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, 3}, true},
    {2, 6, 9, 9, 12, {3, 3}, {{1, 1}, {2, 2}, {2, 2}, 3}, false},
    {1, 20, 9, 9, 40, {5, 5}, {{3, 2}, {4, 3}, {3, 2}, 20}, true},
    {2, 32, 9, 9, 64, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, 2}, true},
    {2, 64, 9, 9, 64, {3, 3}, {{2, 2}, {2, 2}, {2, 2}, 4}, true},
    {2, 16, 9, 9, 16, {3, 3}, {{1, 1}, {5, 5}, {1, 1}, 1}, true}, /* padding beyond the kernel */
    {2, 4, 12, 3, 8, {5, 1}, {{4, 3}, {0, 2}, {1, 1}, 1}, true},
    {1, 5, 3, 3, 3, {3, 3}, {{1, 1}, {0, 0}, {1, 1}, 1}, true}, /* one position */
};

static struct shape conv_x(const struct conv_row *r)
{
    return SHAPE(r->n, r->c, r->h, r->w);
}

static struct shape conv_w(const struct conv_row *r)
{
    return SHAPE(r->o, r->c / r->attr.groups, r->kernel[0], r->kernel[1]);
}

static struct shape conv_y(const struct conv_row *r)
{
    int64_t size[2] = {r->h, r->w};
    for (int i = 0; i < 2; i++)
        size[i] =
            (size[i] + 2 * r->attr.padding[i] - r->attr.dilation[i] * (r->kernel[i] - 1) - 1) /
                r->attr.stride[i] +
            1;
    return SHAPE(r->n, r->o, size[0], size[1]);
}

START_TEST(conv2d)
{
    const struct conv_row *r = &conv_rows[_i];
    struct kernel_test test = {.op = "conv2d", .attr = &r->attr};
    test.in[0] = activation(conv_x(r));
    test.in[1] = variable(conv_w(r), FILL_NORMAL);
    if (r->bias)
        test.in[2] = variable(SHAPE(r->o), FILL_NORMAL);
    test.out[0] = activation(conv_y(r));
    run_arrivals(&test);
}
END_TEST

START_TEST(conv2d_input_grad)
{
    const struct conv_row *r = &conv_rows[_i];
    struct kernel_test test = {.op = "conv2d_input_grad", .attr = &r->attr};
    test.in[0] = activation(conv_y(r));
    test.in[1] = variable(conv_w(r), FILL_NORMAL);
    test.out[0] = activation(conv_x(r));
    run_arrivals(&test);
}
END_TEST

START_TEST(conv2d_weight_grad)
{
    const struct conv_row *r = &conv_rows[_i];
    struct kernel_test test = {.op = "conv2d_weight_grad", .attr = &r->attr};
    test.in[0] = activation(conv_x(r));
    test.in[1] = activation(conv_y(r));
    test.out[0] = variable(conv_w(r), FILL_NORMAL);
    if (r->bias)
        test.out[1] = variable(SHAPE(r->o), FILL_NORMAL);
    run_arrivals(&test);
}
END_TEST

/* Linear */

static const struct linear_row {
    struct shape x;
    int64_t o;
    bool bias;
} linear_rows[] = {
    {{2, {1, 1}}, 1, true},     {{2, {1, 5}}, 2, true},      {{2, {15, 5}}, 2, true},
    {{2, {4, 33}}, 7, false},   {{2, {64, 1024}}, 10, true}, {{2, {3, 100}}, 257, true},
    {{3, {2, 3, 8}}, 20, true}, {{2, {31, 1}}, 16, false},
};

static struct shape linear_y(const struct linear_row *r)
{
    struct shape y = r->x;
    y.dim[y.rank - 1] = r->o;
    return y;
}

static struct shape linear_w(const struct linear_row *r)
{
    return SHAPE(r->o, r->x.dim[r->x.rank - 1]);
}

START_TEST(linear)
{
    const struct linear_row *r = &linear_rows[_i];
    struct kernel_test test = {.op = "linear"};
    test.in[0] = activation(r->x);
    test.in[1] = variable(linear_w(r), FILL_NORMAL);
    if (r->bias)
        test.in[2] = variable(SHAPE(r->o), FILL_NORMAL);
    test.out[0] = activation(linear_y(r));
    run_arrivals(&test);
}
END_TEST

START_TEST(linear_input_grad)
{
    const struct linear_row *r = &linear_rows[_i];
    struct kernel_test test = {.op = "linear_input_grad"};
    test.in[0] = activation(linear_y(r));
    test.in[1] = variable(linear_w(r), FILL_NORMAL);
    test.out[0] = activation(r->x);
    run_arrivals(&test);
}
END_TEST

START_TEST(linear_weight_grad)
{
    const struct linear_row *r = &linear_rows[_i];
    struct kernel_test test = {.op = "linear_weight_grad"};
    test.in[0] = activation(r->x);
    test.in[1] = activation(linear_y(r));
    test.out[0] = variable(linear_w(r), FILL_NORMAL);
    if (r->bias)
        test.out[1] = variable(SHAPE(r->o), FILL_NORMAL);
    run_arrivals(&test);
}
END_TEST

/* BatchNorm */

static const struct batch_norm_row {
    struct shape x;
    struct batch_norm_attr attr; /* eps, momentum */
    bool affine, tracked;
} batch_norm_rows[] = {
    {{4, {4, 1, 5, 5}}, {1e-5, 0.1}, true, true},    {{4, {2, 3, 7, 4}}, {1e-5, 0.1}, true, true},
    {{4, {3, 16, 3, 5}}, {1e-5, 0.3}, true, false},  {{4, {4, 20, 5, 5}}, {1e-3, 0.1}, true, true},
    {{4, {1, 33, 2, 3}}, {1e-5, 1.0}, false, true},  {{4, {2, 64, 8, 8}}, {1e-5, 0.1}, true, true},
    {{4, {5, 17, 1, 1}}, {1e-5, 0.1}, false, false}, {{2, {3, 5}}, {1e-5, 0.1}, true, true},
    {{2, {64, 128}}, {1e-5, 0.1}, true, true},       {{2, {7, 33}}, {1e-5, 0.1}, false, true},
};

static void add_affine(struct kernel_test *test, const struct batch_norm_row *r)
{
    if (!r->affine)
        return;
    test->in[1] = variable(SHAPE(r->x.dim[1]), FILL_POSITIVE);
    test->in[2] = variable(SHAPE(r->x.dim[1]), FILL_NORMAL);
}

static struct kernel_test batch_norm_test(const struct batch_norm_row *r)
{
    struct shape channels = SHAPE(r->x.dim[1]);
    struct kernel_test test = {.op = "batch_norm", .attr = &r->attr};
    test.in[0] = activation(r->x);
    add_affine(&test, r);
    if (r->tracked) {
        test.in[3] = mutated(channels, FILL_NORMAL);
        test.in[4] = mutated(channels, FILL_POSITIVE);
        test.in[5] = mutated((struct shape){0, {0}}, FILL_ZERO);
        test.in[5].dtype = DTYPE_I64;
    }
    test.out[0] = activation(r->x);
    test.out[1] = test.out[2] = activation(channels);
    return test;
}

START_TEST(batch_norm)
{
    struct kernel_test test = batch_norm_test(&batch_norm_rows[_i]);
    run_arrivals(&test);
}
END_TEST

START_TEST(batch_norm_eval)
{
    const struct batch_norm_row *r = &batch_norm_rows[_i];
    struct kernel_test test = {.op = "batch_norm_eval", .attr = &r->attr};
    test.in[0] = activation(r->x);
    add_affine(&test, r);
    test.in[3] = variable(SHAPE(r->x.dim[1]), FILL_NORMAL);
    test.in[4] = variable(SHAPE(r->x.dim[1]), FILL_POSITIVE);
    test.out[0] = activation(r->x);
    run_arrivals(&test);
}
END_TEST

/* `gradients`: of weight and bias too. */
static void check_batch_norm_grad(const struct batch_norm_row *r, bool gradients)
{
    struct shape channels = SHAPE(r->x.dim[1]);
    for (int i = 0; i < ROWS(arrivals); i++) {
        struct kernel_test forward = batch_norm_test(r);
        kernel_test_run(&forward);
        struct kernel_test test = {.op = "batch_norm_grad", .attr = &r->attr};
        test.arrival_block = arrivals[i];
        test.in[0] = activation(r->x);
        test.in[1] = activation(r->x);
        if (r->affine)
            test.in[2] = variable(channels, FILL_POSITIVE);
        test.in[3] = test.in[4] = activation(channels);
        test.in[3].reference = forward.out[1].reference;
        test.in[4].reference = forward.out[2].reference;
        test.out[0] = activation(r->x);
        if (r->affine && gradients)
            test.out[1] = test.out[2] = variable(channels, FILL_NORMAL);
        kernel_test_run(&test);
        forward.out[1].reference = forward.out[2].reference = NULL; /* test's now */
        kernel_test_done(&test);
        kernel_test_done(&forward);
    }
}

START_TEST(batch_norm_grad)
{
    check_batch_norm_grad(&batch_norm_rows[_i], true);
    check_batch_norm_grad(&batch_norm_rows[_i], false);
}
END_TEST

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
    {{4, {1, 2, 20, 20}}, {{17, 17}, {3, 3}, {8, 8}, {1, 1}, {8, 8}}, 7, 7},
};

/* Forward, then the gradient with the workspace that the forward left. */
static void check_max_pool(const struct pool_row *r, int64_t arrival, const float *x)
{
    struct shape y = SHAPE(r->x.dim[0], r->x.dim[1], r->oh, r->ow);
    struct kernel_test forward = {.op = "max_pool2d", .attr = &r->attr, .override = x};
    forward.arrival_block = arrival;
    forward.in[0] = activation(r->x);
    forward.out[0] = activation(y);
    forward.out[1] =
        (struct tensor){.shape = y, .fill = FILL_NORMAL, .dtype = DTYPE_U8, .opaque = true};
    kernel_test_run(&forward);

    struct kernel_test grad = {.op = "max_pool2d_grad", .attr = &r->attr};
    grad.in[0] = activation(y);
    grad.in[1] = forward.out[1];
    grad.out[0] = activation(r->x);
    kernel_test_run(&grad);
    kernel_test_done(&grad);
    kernel_test_done(&forward);

    struct kernel_test eval = {.op = "max_pool2d", .attr = &r->attr, .override = x};
    eval.arrival_block = arrival;
    eval.in[0] = activation(r->x);
    eval.out[0] = activation(y);
    kernel_test_run(&eval);
    kernel_test_done(&eval);
}

START_TEST(max_pool2d)
{
    for (int i = 0; i < ROWS(arrivals); i++)
        check_max_pool(&pool_rows[_i], arrivals[i], NULL);
}
END_TEST

/* Ties, NaN and minus infinity. */
START_TEST(max_pool2d_special)
{
    static const struct pool_row row = {
        {4, {1, 1, 4, 6}}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, {0, 0}}, 2, 3};
    static const float x[24] = {1, 1,         0,         NAN,       -INFINITY, -INFINITY, //
                                1, 1,         NAN,       7,         -INFINITY, -INFINITY, //
                                0, -0.0f,     INFINITY,  1,         -1,        -1,        //
                                0, -INFINITY, -INFINITY, -INFINITY, -1,        -2};
    for (int i = 0; i < ROWS(arrivals); i++)
        check_max_pool(&row, arrivals[i], x);
}
END_TEST

static const struct average_row {
    struct shape x;
    int64_t oh, ow;
} average_rows[] = {
    {{4, {2, 1, 8, 8}}, 1, 1},  {{4, {1, 3, 7, 5}}, 3, 2},  {{4, {2, 20, 5, 7}}, 2, 7},
    {{4, {2, 16, 3, 2}}, 5, 4}, {{4, {1, 33, 6, 6}}, 6, 6}, {{4, {2, 64, 4, 4}}, 1, 1},
};

START_TEST(adaptive_avg_pool2d)
{
    const struct average_row *r = &average_rows[_i];
    struct shape y = SHAPE(r->x.dim[0], r->x.dim[1], r->oh, r->ow);
    struct kernel_test test = {.op = "adaptive_avg_pool2d"};
    test.in[0] = activation(r->x);
    test.out[0] = activation(y);
    run_arrivals(&test);
    struct kernel_test grad = {.op = "adaptive_avg_pool2d_grad"};
    grad.in[0] = activation(y);
    grad.out[0] = activation(r->x);
    run_arrivals(&grad);
}
END_TEST

/* Element by element */

static const struct shape shapes[] = {
    {2, {1, 1}},        {2, {3, 5}},         {4, {2, 3, 5, 7}},  {4, {1, 20, 3, 3}},
    {4, {2, 16, 4, 4}}, {4, {3, 33, 17, 9}}, {3, {2, 100, 101}},
};

START_TEST(relu)
{
    struct kernel_test test = {.op = "relu"};
    test.in[0] = test.out[0] = activation(shapes[_i]);
    run_arrivals(&test);
    struct kernel_test grad = {.op = "relu_grad"};
    grad.in[0] = grad.in[1] = grad.out[0] = activation(shapes[_i]);
    run_arrivals(&grad);
}
END_TEST

START_TEST(relu_nan)
{
    static const float x[4] = {NAN, -1, INFINITY, -INFINITY};
    struct kernel_test test = {.op = "relu", .override = x};
    test.in[0] = test.out[0] = activation(SHAPE(2, 2));
    kernel_test_run(&test);
    ck_assert(isnan(*(float *)test.out[0].memory));
    kernel_test_done(&test);
}
END_TEST

START_TEST(add)
{
    struct kernel_test test = {.op = "add"};
    test.in[0] = test.in[1] = test.out[0] = activation(shapes[_i]);
    run_arrivals(&test);
    test.in[2] = test.in[3] = activation(shapes[_i]);
    run_arrivals(&test);
}
END_TEST

START_TEST(dropout)
{
    static const double rates[] = {0, 0.25, 0.5, 1};
    for (int i = 0; i < ROWS(rates); i++) {
        struct dropout_attr attr = {.p = rates[i], .layer = 3};
        struct kernel_test test = {.op = "dropout", .attr = &attr};
        test.step = (struct step){.seed = 11, .number = 5, .first_sample = 60};
        test.in[0] = test.out[0] = activation(shapes[_i]);
        run_arrivals(&test);
        test.op = "dropout_grad";
        run_arrivals(&test);
    }
}
END_TEST

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
    const float *a = whole.out[0].memory, *b = rest.out[0].memory;
    for (int i = 0; i < 14; i++)
        ck_assert_int_eq(a[3 * 7 + i] == 0, b[i] == 0);
    kernel_test_done(&whole);
    kernel_test_done(&rest);
}
END_TEST

/* Losses */

static const struct shape logits[] = {
    {2, {1, 1}}, {2, {1, 2}}, {2, {5, 10}}, {2, {64, 10}}, {2, {20, 1000}}};

static struct tensor loss(void)
{
    return (struct tensor){.shape = SHAPE(1), .fill = FILL_NORMAL, .dtype = DTYPE_F64};
}

START_TEST(cross_entropy)
{
    struct kernel_test test = {.op = "cross_entropy", .step = {.loss_divisor = 70}};
    test.in[0] = activation(logits[_i]);
    test.in[1] =
        (struct tensor){.shape = SHAPE(logits[_i].dim[0]), .fill = FILL_CLASS, .dtype = DTYPE_I64};
    test.out[0] = loss();
    run_arrivals(&test);
    test.out[1] = activation(logits[_i]);
    run_arrivals(&test);
}
END_TEST

/* Logits whose exponentials overflow. */
START_TEST(cross_entropy_large)
{
    static const float x[6] = {1000, 999, -1000, -5000, -5001, -5000};
    struct kernel_test test = {.op = "cross_entropy", .step = {.loss_divisor = 2}, .override = x};
    test.in[0] = test.out[1] = activation(SHAPE(2, 3));
    test.in[1] = (struct tensor){.shape = SHAPE(2), .fill = FILL_CLASS, .dtype = DTYPE_I64};
    test.out[0] = loss();
    kernel_test_run(&test);
    ck_assert(isfinite(*(double *)test.out[0].memory));
    kernel_test_done(&test);
}
END_TEST

START_TEST(mse)
{
    struct kernel_test test = {.op = "mse", .step = {.loss_divisor = 300}};
    test.in[0] = test.in[1] = activation(shapes[_i]);
    test.out[0] = loss();
    run_arrivals(&test);
    test.out[1] = activation(shapes[_i]);
    run_arrivals(&test);
}
END_TEST

START_TEST(argmax)
{
    struct kernel_test test = {.op = "argmax"};
    test.in[0] = activation(logits[_i]);
    test.out[0] =
        (struct tensor){.shape = SHAPE(logits[_i].dim[0]), .fill = FILL_NORMAL, .dtype = DTYPE_I64};
    run_arrivals(&test);
}
END_TEST

START_TEST(argmax_ties)
{
    static const float x[12] = {1, 3, 3, 2, 0, NAN, 5, NAN, -1, -1, -1, -1};
    struct kernel_test test = {.op = "argmax", .override = x};
    test.in[0] = activation(SHAPE(3, 4));
    test.out[0] = (struct tensor){.shape = SHAPE(3), .fill = FILL_NORMAL, .dtype = DTYPE_I64};
    kernel_test_run(&test);
    const int64_t *prediction = test.out[0].memory;
    ck_assert_int_eq(prediction[0], 1);
    ck_assert_int_eq(prediction[1], 1);
    ck_assert_int_eq(prediction[2], 0);
    kernel_test_done(&test);
}
END_TEST

/* SGD */

static const struct sgd_attr sgd_rows[] = {
    {0, 0, 0, false},     {0, 0, 0.01, false},  {0.9, 0, 0, false},
    {0.9, 0.1, 0, false}, {0.9, 0, 1e-4, true}, {0.5, 0.3, 0.01, false},
};

START_TEST(sgd)
{
    for (int64_t number = 1; number <= 2; number++) {
        struct kernel_test test = {.op = "sgd", .attr = &sgd_rows[_i]};
        test.step = (struct step){.number = number, .lr = 0.1};
        test.in[0] = mutated(SHAPE(33, 301), FILL_NORMAL);
        test.in[1] = variable(SHAPE(33, 301), FILL_NORMAL);
        if (sgd_rows[_i].momentum > 0)
            test.in[2] = mutated(SHAPE(33, 301), FILL_NORMAL);
        run_arrivals(&test);
    }
}
END_TEST

/* On one or on two threads. */
static void setup_one(void)
{
    kernel_test_setup(1);
}

static void setup_two(void)
{
    kernel_test_setup(2);
}

int main(void)
{
    const struct {
        const TTest *test;
        int rows;
    } tests[] = {
        {conv2d, ROWS(conv_rows)},
        {conv2d_input_grad, ROWS(conv_rows)},
        {conv2d_weight_grad, ROWS(conv_rows)},
        {linear, ROWS(linear_rows)},
        {linear_input_grad, ROWS(linear_rows)},
        {linear_weight_grad, ROWS(linear_rows)},
        {batch_norm, ROWS(batch_norm_rows)},
        {batch_norm_eval, ROWS(batch_norm_rows)},
        {batch_norm_grad, ROWS(batch_norm_rows)},
        {max_pool2d, ROWS(pool_rows)},
        {max_pool2d_special, 1},
        {adaptive_avg_pool2d, ROWS(average_rows)},
        {relu, ROWS(shapes)},
        {relu_nan, 1},
        {add, ROWS(shapes)},
        {dropout, ROWS(shapes)},
        {dropout_chunks, 1},
        {cross_entropy, ROWS(logits)},
        {cross_entropy_large, 1},
        {mse, ROWS(shapes)},
        {argmax, ROWS(logits)},
        {argmax_ties, 1},
        {sgd, ROWS(sgd_rows)},
    };
    Suite *suite = suite_create("kernels");
    void (*const setups[])(void) = {setup_one, setup_two};
    const char *const names[] = {"one thread", "two threads"};
    for (int s = 0; s < 2; s++) {
        TCase *tcase = checks_case(suite, names[s], 60);
        tcase_add_checked_fixture(tcase, setups[s], kernel_test_teardown);
        for (int i = 0; i < ROWS(tests); i++)
            tcase_add_loop_test(tcase, tests[i].test, 0, tests[i].rows);
    }
    return checks_run(suite);
}
