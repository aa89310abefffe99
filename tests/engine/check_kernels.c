/* check_kernels.c: the kernels on oneDNN against their references, over shapes that a user can
 * write: Conv2d, Linear, BatchNorm and their gradients. */
#include "engine/base/team.h"
#include "engine/ops/attr.h"
#include "tests/engine/kernel_test.h"

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

static void conv2d_row(int row)
{
    const struct conv_row *r = &conv_rows[row];
    struct kernel_test test = {.op = "conv2d", .attr = &r->attr};
    test.in[0] = kernel_test_activation(conv_x(r));
    test.in[1] = kernel_test_variable(conv_w(r), FILL_NORMAL);
    if (r->bias)
        test.in[2] = kernel_test_variable(SHAPE(r->o), FILL_NORMAL);
    test.out[0] = kernel_test_activation(conv_y(r));
    kernel_test_arrivals(&test);
}
ALL_ROWS(conv2d, conv_rows)

static void conv2d_input_grad_row(int row)
{
    const struct conv_row *r = &conv_rows[row];
    struct kernel_test test = {.op = "conv2d_input_grad", .attr = &r->attr};
    test.in[0] = kernel_test_activation(conv_y(r));
    test.in[1] = kernel_test_variable(conv_w(r), FILL_NORMAL);
    test.out[0] = kernel_test_activation(conv_x(r));
    kernel_test_arrivals(&test);
}
ALL_ROWS(conv2d_input_grad, conv_rows)

static void conv2d_weight_grad_row(int row)
{
    const struct conv_row *r = &conv_rows[row];
    struct kernel_test test = {.op = "conv2d_weight_grad", .attr = &r->attr};
    test.in[0] = kernel_test_activation(conv_x(r));
    test.in[1] = kernel_test_activation(conv_y(r));
    test.out[0] = kernel_test_variable(conv_w(r), FILL_NORMAL);
    if (r->bias)
        test.out[1] = kernel_test_variable(SHAPE(r->o), FILL_NORMAL);
    kernel_test_arrivals(&test);
}
ALL_ROWS(conv2d_weight_grad, conv_rows)

/* PyTorch's "same": one more row or column of zeros behind the input than before it. */
static const struct conv_row same_rows[] = {
    {1, 1, 5, 5, 1, {2, 2}, {{1, 1}, {0, 0}, {1, 1}, 1}, true},
    {2, 16, 7, 6, 32, {4, 2}, {{1, 1}, {1, 0}, {1, 1}, 1}, true},
    {2, 6, 5, 9, 12, {2, 4}, {{1, 1}, {1, 1}, {3, 1}, 3}, false},
    {1, 3, 3, 3, 4, {6, 8}, {{1, 1}, {2, 3}, {1, 1}, 1}, true},
};

static void conv2d_same_row(int row)
{
    const struct conv_row *r = &same_rows[row];
    struct tensor x = kernel_test_activation(conv_x(r));
    struct tensor y = kernel_test_activation(SHAPE(r->n, r->o, r->h, r->w));
    struct tensor w = kernel_test_variable(conv_w(r), FILL_NORMAL);
    struct kernel_test forward = {.op = "conv2d", .attr = &r->attr, .in = {x, w}, .out = {y}};
    struct kernel_test input_grad = {
        .op = "conv2d_input_grad", .attr = &r->attr, .in = {y, w}, .out = {x}};
    struct kernel_test weight_grad = {
        .op = "conv2d_weight_grad", .attr = &r->attr, .in = {x, y}, .out = {w}};
    kernel_test_arrivals(&forward);
    kernel_test_arrivals(&input_grad);
    kernel_test_arrivals(&weight_grad);
}
ALL_ROWS(conv2d_same, same_rows)

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

static void linear_row(int row)
{
    const struct linear_row *r = &linear_rows[row];
    struct kernel_test test = {.op = "linear"};
    test.in[0] = kernel_test_activation(r->x);
    test.in[1] = kernel_test_variable(linear_w(r), FILL_NORMAL);
    if (r->bias)
        test.in[2] = kernel_test_variable(SHAPE(r->o), FILL_NORMAL);
    test.out[0] = kernel_test_activation(linear_y(r));
    kernel_test_arrivals(&test);
}
ALL_ROWS(linear, linear_rows)

static void linear_input_grad_row(int row)
{
    const struct linear_row *r = &linear_rows[row];
    struct kernel_test test = {.op = "linear_input_grad"};
    test.in[0] = kernel_test_activation(linear_y(r));
    test.in[1] = kernel_test_variable(linear_w(r), FILL_NORMAL);
    test.out[0] = kernel_test_activation(r->x);
    kernel_test_arrivals(&test);
}
ALL_ROWS(linear_input_grad, linear_rows)

static void linear_weight_grad_row(int row)
{
    const struct linear_row *r = &linear_rows[row];
    struct kernel_test test = {.op = "linear_weight_grad"};
    test.in[0] = kernel_test_activation(r->x);
    test.in[1] = kernel_test_activation(linear_y(r));
    test.out[0] = kernel_test_variable(linear_w(r), FILL_NORMAL);
    if (r->bias)
        test.out[1] = kernel_test_variable(SHAPE(r->o), FILL_NORMAL);
    kernel_test_arrivals(&test);
}
ALL_ROWS(linear_weight_grad, linear_rows)

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
    {{2, {9, 20}}, {1e-5, 0.1}, true, true},         {{2, {3, 1}}, {1e-5, 0.1}, true, true},
    {{4, {2, 19, 45, 47}}, {1e-5, 0.1}, true, true},
};

static void add_affine(struct kernel_test *test, const struct batch_norm_row *r)
{
    if (!r->affine)
        return;
    test->in[1] = kernel_test_variable(SHAPE(r->x.dim[1]), FILL_POSITIVE);
    test->in[2] = kernel_test_variable(SHAPE(r->x.dim[1]), FILL_NORMAL);
}

static struct kernel_test batch_norm_test(const struct batch_norm_row *r)
{
    struct shape channels = SHAPE(r->x.dim[1]);
    struct kernel_test test = {.op = "batch_norm", .attr = &r->attr};
    test.in[0] = kernel_test_activation(r->x);
    add_affine(&test, r);
    if (r->tracked) {
        test.in[3] = kernel_test_mutated(channels, FILL_NORMAL);
        test.in[4] = kernel_test_mutated(channels, FILL_POSITIVE);
        test.in[5] = kernel_test_mutated((struct shape){0, {0}}, FILL_ZERO);
        test.in[5].dtype = DTYPE_I64;
    }
    test.out[0] = kernel_test_activation(r->x);
    test.out[1] = test.out[2] = kernel_test_activation(channels);
    return test;
}

static void batch_norm_row(int row)
{
    struct kernel_test test = batch_norm_test(&batch_norm_rows[row]);
    kernel_test_arrivals(&test);
}
ALL_ROWS(batch_norm, batch_norm_rows)

static void batch_norm_eval_row(int row)
{
    const struct batch_norm_row *r = &batch_norm_rows[row];
    struct kernel_test test = {.op = "batch_norm_eval", .attr = &r->attr};
    test.in[0] = kernel_test_activation(r->x);
    add_affine(&test, r);
    test.in[3] = kernel_test_variable(SHAPE(r->x.dim[1]), FILL_NORMAL);
    test.in[4] = kernel_test_variable(SHAPE(r->x.dim[1]), FILL_POSITIVE);
    test.out[0] = kernel_test_activation(r->x);
    kernel_test_arrivals(&test);
}
ALL_ROWS(batch_norm_eval, batch_norm_rows)

/* `gradients`: of weight and bias too. */
static void check_batch_norm_grad(const struct batch_norm_row *r, bool gradients)
{
    struct shape channels = SHAPE(r->x.dim[1]);
    for (int i = 0; i < test_backend_n_arrivals; i++) {
        struct kernel_test forward = batch_norm_test(r);
        kernel_test_run(&forward);
        struct kernel_test test = {.op = "batch_norm_grad", .attr = &r->attr};
        test.arrival_block = test_backend_arrivals[i];
        test.in[0] = kernel_test_activation(r->x);
        test.in[1] = kernel_test_activation(r->x);
        if (r->affine)
            test.in[2] = kernel_test_variable(channels, FILL_POSITIVE);
        test.in[3] = test.in[4] = kernel_test_activation(channels);
        test.in[3].reference = forward.out[1].reference;
        test.in[4].reference = forward.out[2].reference;
        test.out[0] = kernel_test_activation(r->x);
        if (r->affine && gradients)
            test.out[1] = test.out[2] = kernel_test_variable(channels, FILL_NORMAL);
        kernel_test_run(&test);
        forward.out[1].reference = forward.out[2].reference = NULL; /* test's now */
        kernel_test_done(&test);
        kernel_test_done(&forward);
    }
}

static void batch_norm_grad_row(int row)
{
    check_batch_norm_grad(&batch_norm_rows[row], true);
    check_batch_norm_grad(&batch_norm_rows[row], false);
}
ALL_ROWS(batch_norm_grad, batch_norm_rows)

/* BatchNorm and ReLU in one, alone and with a residual. */

static void batch_norm_relu_row(int row)
{
    struct kernel_test test = batch_norm_test(&batch_norm_rows[row]);
    test.op = "batch_norm_relu";
    kernel_test_arrivals(&test);
    test.in[6] = kernel_test_activation(batch_norm_rows[row].x);
    kernel_test_arrivals(&test);
}
ALL_ROWS(batch_norm_relu, batch_norm_rows)

static void batch_norm_relu_eval_row(int row)
{
    const struct batch_norm_row *r = &batch_norm_rows[row];
    struct kernel_test test = {.op = "batch_norm_relu_eval", .attr = &r->attr};
    test.in[0] = kernel_test_activation(r->x);
    add_affine(&test, r);
    test.in[3] = kernel_test_variable(SHAPE(r->x.dim[1]), FILL_NORMAL);
    test.in[4] = kernel_test_variable(SHAPE(r->x.dim[1]), FILL_POSITIVE);
    test.out[0] = kernel_test_activation(r->x);
    kernel_test_arrivals(&test);
    test.in[5] = kernel_test_activation(r->x);
    kernel_test_arrivals(&test);
}
ALL_ROWS(batch_norm_relu_eval, batch_norm_rows)

static void check_batch_norm_relu_grad(const struct batch_norm_row *r, bool gradients,
                                       bool residual)
{
    struct shape channels = SHAPE(r->x.dim[1]);
    for (int i = 0; i < test_backend_n_arrivals; i++) {
        struct kernel_test forward = batch_norm_test(r);
        kernel_test_run(&forward);
        struct kernel_test test = {.op = "batch_norm_relu_grad", .attr = &r->attr};
        test.arrival_block = test_backend_arrivals[i];
        test.in[0] = test.in[1] = kernel_test_activation(r->x);
        if (r->affine)
            test.in[2] = kernel_test_variable(channels, FILL_POSITIVE);
        if (r->affine)
            test.in[3] = kernel_test_variable(channels, FILL_NORMAL);
        test.in[4] = test.in[5] = kernel_test_activation(channels);
        test.in[4].reference = forward.out[1].reference;
        test.in[5].reference = forward.out[2].reference;
        test.out[0] = kernel_test_activation(r->x);
        if (r->affine && gradients)
            test.out[1] = test.out[2] = kernel_test_variable(channels, FILL_NORMAL);
        if (residual)
            test.in[6] = test.out[3] = kernel_test_activation(r->x);
        kernel_test_run(&test);
        forward.out[1].reference = forward.out[2].reference = NULL; /* test's now */
        kernel_test_done(&test);
        kernel_test_done(&forward);
    }
}

static void batch_norm_relu_grad_row(int row)
{
    check_batch_norm_relu_grad(&batch_norm_rows[row], true, false);
    check_batch_norm_relu_grad(&batch_norm_rows[row], true, true);
    check_batch_norm_relu_grad(&batch_norm_rows[row], false, true);
}
ALL_ROWS(batch_norm_relu_grad, batch_norm_rows)

/* An output that is too large for a cache goes past it. */
START_TEST(large_outputs)
{
    static const struct batch_norm_row large = {{4, {9, 33, 60, 62}}, {1e-5, 0.1}, true, true};
    struct kernel_test test = batch_norm_test(&large);
    test.op = "batch_norm_relu";
    test.arrival_block = 16;
    kernel_test_run(&test);
    kernel_test_done(&test);
}
END_TEST

/* The team shares samples where channels are few: into how many parts does not depend on it. */
START_TEST(team_changes_no_bit)
{
    static const int teams[] = {1, 2, 5};
    struct kernel_test tests[ROWS(teams)];
    int size = team_size();
    for (int t = 0; t < ROWS(teams); t++) {
        tests[t] = batch_norm_test(&batch_norm_rows[12]);
        team_set_size(teams[t]);
        kernel_test_run(&tests[t]);
    }
    team_set_size(size);
    for (int t = 1; t < ROWS(teams); t++)
        for (int k = 0; k < 3; k++)
            for (int64_t i = 0; i < shape_count(&tests[0].out[k].shape); i++)
                ck_assert_double_eq(kernel_test_element(&tests[t].out[k], i),
                                    kernel_test_element(&tests[0].out[k], i));
    for (int t = 0; t < ROWS(teams); t++)
        kernel_test_done(&tests[t]);
}
END_TEST

/* A kernel of each kind of program: with a weight fetched, with one left, plain, with statistics.
 */
START_TEST(allocations)
{
    const struct conv_row *r = &conv_rows[8];
    struct kernel_test conv = {.op = "conv2d", .attr = &r->attr};
    conv.in[0] = kernel_test_activation(conv_x(r));
    conv.in[1] = kernel_test_variable(conv_w(r), FILL_NORMAL);
    conv.out[0] = kernel_test_activation(conv_y(r));
    kernel_test_allocations(&conv);

    struct kernel_test grad = {.op = "conv2d_weight_grad", .attr = &r->attr};
    grad.in[0] = kernel_test_activation(conv_x(r));
    grad.in[1] = kernel_test_activation(conv_y(r));
    grad.out[0] = kernel_test_variable(conv_w(r), FILL_NORMAL);
    kernel_test_allocations(&grad);

    struct kernel_test product = {.op = "linear"};
    product.in[0] = kernel_test_activation(SHAPE(3, 5));
    product.in[1] = kernel_test_variable(SHAPE(2, 5), FILL_NORMAL);
    product.out[0] = kernel_test_activation(SHAPE(3, 2));
    kernel_test_allocations(&product);

    struct kernel_test norm = batch_norm_test(&batch_norm_rows[0]);
    kernel_test_allocations(&norm);
    norm.op = "batch_norm_relu";
    kernel_test_allocations(&norm);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        allocations,          conv2d,
        conv2d_input_grad,    conv2d_weight_grad,
        conv2d_same,          linear,
        linear_input_grad,    linear_weight_grad,
        batch_norm,           batch_norm_eval,
        batch_norm_grad,      batch_norm_relu,
        batch_norm_relu_eval, batch_norm_relu_grad,
        large_outputs,        team_changes_no_bit,
    };
    return kernel_test_main("kernels", tests, ROWS(tests));
}
