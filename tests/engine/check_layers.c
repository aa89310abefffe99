/* check_layers.c: activations, normalisation along rows, average pooling, products and
 * concatenation against their references. */
#include <math.h>

#include "engine/ops/attr.h"
#include "tests/engine/kernel_test.h"

/* Element by element */

static const struct shape shapes[] = {
    {2, {1, 1}},        {2, {3, 5}},         {4, {2, 3, 5, 7}},  {4, {1, 20, 3, 3}},
    {4, {2, 16, 4, 4}}, {4, {3, 33, 17, 9}}, {3, {2, 100, 101}},
};

/* The forward, and the gradient from what it saved: its input, or its output. */
static void check_activation(const char *op, const char *grad_op, const void *attr,
                             struct shape shape)
{
    struct kernel_test test = {.op = op, .attr = attr};
    test.in[0] = test.out[0] = kernel_test_activation(shape);
    kernel_test_arrivals(&test);
    struct kernel_test grad = {.op = grad_op, .attr = attr};
    grad.in[0] = grad.in[1] = grad.out[0] = kernel_test_activation(shape);
    kernel_test_arrivals(&grad);
}

static void activations_row(int row)
{
    static const struct gelu_attr by_erf = {false}, by_tanh = {true};
    check_activation("gelu", "gelu_grad", &by_erf, shapes[row]);
    check_activation("gelu", "gelu_grad", &by_tanh, shapes[row]);
    check_activation("silu", "silu_grad", NULL, shapes[row]);
    check_activation("sigmoid", "sigmoid_grad", NULL, shapes[row]);
    check_activation("tanh", "tanh_grad", NULL, shapes[row]);
}
ALL_ROWS(activations, shapes)

/* A job that diverges must not look healthy; far from zero the functions are flat. */
START_TEST(activations_special)
{
    static const char *const ops[] = {"gelu", "silu", "sigmoid", "tanh"};
    static const float x[6] = {NAN, 30, -30, 100, -100, 0};
    for (int i = 0; i < ROWS(ops) + 1; i++) {
        struct gelu_attr attr = {i == ROWS(ops)};
        struct kernel_test test = {.op = ops[i % ROWS(ops)], .attr = &attr, .override = x};
        test.in[0] = test.out[0] = kernel_test_activation(SHAPE(2, 3));
        kernel_test_run(&test);
        ck_assert_msg(isnan(kernel_test_element(&test.out[0], 0)), "%s of NaN", test.op);
        kernel_test_done(&test);
    }
}
END_TEST

static void mul_row(int row)
{
    struct kernel_test test = {.op = "mul"};
    test.in[0] = test.in[1] = test.out[0] = kernel_test_activation(shapes[row]);
    kernel_test_arrivals(&test);
    test.in[2] = test.in[3] = kernel_test_activation(shapes[row]);
    kernel_test_arrivals(&test);
}
ALL_ROWS(mul, shapes)

/* Softmax */

static const struct softmax_row {
    struct shape x;
    struct softmax_attr attr; /* dim */
} softmax_rows[] = {
    {{2, {1, 1}}, {1}},         {{2, {1, 7}}, {1}},         {{2, {5, 10}}, {1}},
    {{2, {64, 1000}}, {1}},     {{3, {3, 17, 33}}, {2}},    {{3, {3, 17, 33}}, {1}},
    {{4, {2, 20, 9, 11}}, {1}}, {{4, {2, 20, 9, 11}}, {2}}, {{4, {1, 16, 4, 4}}, {3}},
    {{4, {2, 33, 64, 2}}, {1}},
};

static void softmax_row(int row)
{
    const struct softmax_row *r = &softmax_rows[row];
    check_activation("softmax", "softmax_grad", &r->attr, r->x);
    check_activation("log_softmax", "log_softmax_grad", &r->attr, r->x);
}
ALL_ROWS(softmax, softmax_rows)

/* Exponents that overflow, infinities, and a NaN, which makes its whole row NaN: in rows and in
 * columns. */
START_TEST(softmax_special)
{
    static const float x[12] = {1000, 999, -1000, -INFINITY, -5000, -5001, 1, NAN, 2, -90, -500, 0};
    static const char *const ops[] = {"softmax", "log_softmax"};
    static const struct shape forms[] = {{2, {4, 3}}, {3, {1, 3, 4}}};
    struct softmax_attr attr = {1};
    for (int i = 0; i < ROWS(ops) * ROWS(forms); i++) {
        struct kernel_test test = {.op = ops[i % 2], .attr = &attr, .override = x};
        test.in[0] = test.out[0] = kernel_test_activation(forms[i / 2]);
        kernel_test_run(&test);
        const float *y = test.out[0].memory;
        ck_assert(i / 2 == 0 ? isnan(y[6]) && isnan(y[8]) : isnan(y[3]) && isnan(y[11]));
        kernel_test_done(&test);
    }
}
END_TEST

/* LayerNorm */

static const struct layer_norm_row {
    struct shape x;
    struct layer_norm_attr attr; /* eps, dims */
    bool weight, bias;
} layer_norm_rows[] = {
    {{2, {1, 1}}, {1e-5, 1}, true, true},        {{2, {1, 5}}, {1e-5, 1}, true, true},
    {{2, {7, 33}}, {1e-5, 1}, true, true},       {{3, {2, 17, 64}}, {1e-5, 1}, true, true},
    {{3, {3, 5, 100}}, {1e-3, 1}, true, false},  {{3, {3, 5, 100}}, {1e-5, 2}, false, false},
    {{4, {2, 20, 3, 5}}, {1e-5, 3}, true, true}, {{4, {2, 16, 4, 4}}, {1e-5, 1}, true, true},
    {{2, {64, 1000}}, {1e-5, 1}, true, true},
};

static struct shape tail(const struct layer_norm_row *r)
{
    struct shape shape = {.rank = r->attr.dims};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = r->x.dim[r->x.rank - shape.rank + i];
    return shape;
}

static struct shape lead(const struct layer_norm_row *r)
{
    struct shape shape = r->x;
    shape.rank -= r->attr.dims;
    return shape;
}

static struct kernel_test layer_norm_test(const struct layer_norm_row *r)
{
    struct kernel_test test = {.op = "layer_norm", .attr = &r->attr};
    test.in[0] = test.out[0] = kernel_test_activation(r->x);
    if (r->weight)
        test.in[1] = kernel_test_variable(tail(r), FILL_POSITIVE);
    if (r->bias)
        test.in[2] = kernel_test_variable(tail(r), FILL_NORMAL);
    return test;
}

static void layer_norm_row(int row)
{
    struct kernel_test eval = layer_norm_test(&layer_norm_rows[row]), training = eval;
    kernel_test_arrivals(&eval);
    training.out[1] = training.out[2] = kernel_test_activation(lead(&layer_norm_rows[row]));
    kernel_test_arrivals(&training);
}
ALL_ROWS(layer_norm, layer_norm_rows)

/* `gradients`: of weight and bias too. */
static void check_layer_norm_grad(const struct layer_norm_row *r, bool gradients)
{
    struct kernel_test forward = layer_norm_test(r);
    forward.out[1] = forward.out[2] = kernel_test_activation(lead(r));
    kernel_test_run(&forward);
    struct kernel_test test = {.op = "layer_norm_grad", .attr = &r->attr};
    test.in[0] = test.in[1] = test.out[0] = kernel_test_activation(r->x);
    if (r->weight)
        test.in[2] = kernel_test_variable(tail(r), FILL_POSITIVE);
    test.in[3] = test.in[4] = kernel_test_activation(lead(r));
    test.in[3].reference = forward.out[1].reference;
    test.in[4].reference = forward.out[2].reference;
    if (r->weight && gradients)
        test.out[1] = kernel_test_variable(tail(r), FILL_NORMAL);
    if (r->bias && gradients)
        test.out[2] = kernel_test_variable(tail(r), FILL_NORMAL);
    kernel_test_run(&test);
    forward.out[1].reference = forward.out[2].reference = NULL; /* test's now */
    kernel_test_done(&test);
    kernel_test_done(&forward);
}

static void layer_norm_grad_row(int row)
{
    check_layer_norm_grad(&layer_norm_rows[row], true);
    check_layer_norm_grad(&layer_norm_rows[row], false);
}
ALL_ROWS(layer_norm_grad, layer_norm_rows)

/* AvgPool2d */

static const struct average_row {
    struct shape x;
    struct avg_pool2d_attr attr; /* kernel_size, stride, padding, count_include_pad, divisor */
    int64_t oh, ow;
} average_rows[] = {
    {{4, {2, 1, 8, 8}}, {{2, 2}, {2, 2}, {0, 0}, true, 0}, 4, 4},
    {{4, {1, 3, 7, 5}}, {{3, 3}, {2, 2}, {1, 1}, true, 0}, 4, 3},
    {{4, {2, 16, 9, 7}}, {{3, 2}, {1, 2}, {1, 1}, false, 0}, 9, 4},
    {{4, {2, 20, 6, 6}}, {{3, 3}, {2, 2}, {0, 0}, true, 0}, 3, 3}, /* ceil_mode */
    {{4, {2, 20, 6, 6}}, {{3, 3}, {2, 2}, {1, 1}, true, 0}, 4, 4},
    {{4, {2, 20, 6, 6}}, {{3, 3}, {2, 2}, {1, 1}, false, 0}, 4, 4},
    {{4, {3, 33, 9, 9}}, {{3, 3}, {2, 2}, {1, 1}, true, 5}, 5, 5},
    {{4, {2, 5, 4, 4}}, {{4, 4}, {4, 4}, {0, 0}, true, 0}, 1, 1},
    {{4, {1, 64, 7, 7}}, {{7, 7}, {7, 7}, {0, 0}, true, 0}, 1, 1},
};

static void avg_pool2d_row(int row)
{
    const struct average_row *r = &average_rows[row];
    struct shape y = SHAPE(r->x.dim[0], r->x.dim[1], r->oh, r->ow);
    struct kernel_test test = {.op = "avg_pool2d", .attr = &r->attr};
    test.in[0] = kernel_test_activation(r->x);
    test.out[0] = kernel_test_activation(y);
    kernel_test_arrivals(&test);
    struct kernel_test grad = {.op = "avg_pool2d_grad", .attr = &r->attr};
    grad.in[0] = kernel_test_activation(y);
    grad.out[0] = kernel_test_activation(r->x);
    kernel_test_arrivals(&grad);
}
ALL_ROWS(avg_pool2d, average_rows)

/* Cat */

static const struct cat_row {
    struct shape whole;
    int dim, n;
    int64_t size[NODE_MAX_IN];
} cat_rows[] = {
    {{2, {1, 2}}, 1, 2, {1, 1}},
    {{2, {3, 12}}, 1, 3, {5, 1, 6}},
    {{3, {2, 7, 5}}, 1, 2, {3, 4}},
    {{3, {2, 7, 5}}, 2, 2, {3, 2}},
    {{4, {2, 48, 5, 3}}, 1, 2, {16, 32}},
    {{4, {2, 40, 5, 3}}, 1, 3, {8, 16, 16}},
    {{4, {2, 20, 5, 3}}, 1, 2, {16, 4}},
    {{4, {1, 16, 9, 4}}, 2, 2, {4, 5}},
    {{4, {1, 16, 4, 9}}, 3, 8, {1, 1, 2, 1, 1, 1, 1, 1}},
};

static void cat_row(int row)
{
    const struct cat_row *r = &cat_rows[row];
    struct cat_attr attr = {0};
    struct kernel_test test = {.op = "cat", .attr = &attr};
    test.out[0] = kernel_test_activation(r->whole);
    int64_t begin = 0;
    for (int i = 0; i < r->n; i++) {
        struct shape part = r->whole;
        part.dim[r->dim] = r->size[i];
        attr.part[i] = (struct slice_attr){r->dim, begin};
        begin += r->size[i];
        test.in[i] = kernel_test_activation(part);
    }
    kernel_test_arrivals(&test);
    for (int i = 0; i < r->n; i++) {
        struct kernel_test grad = {.op = "slice", .attr = &attr.part[i]};
        grad.in[0] = kernel_test_activation(r->whole);
        grad.out[0] = test.in[i];
        kernel_test_arrivals(&grad);
    }
}
ALL_ROWS(cat, cat_rows)

static const struct shape spectral_rows[] = {{2, {1, 1}},        {2, {4, 5}},  {2, {1, 9}},
                                             {2, {257, 100}},    {2, {10, 1}}, {4, {8, 3, 3, 2}},
                                             {4, {64, 16, 5, 5}}};

static void spectral_norm_row(int row)
{
    struct shape w = spectral_rows[row], u = SHAPE(w.dim[0]);
    struct shape v = SHAPE(shape_count(&w) / w.dim[0]);
    struct kernel_test iteration = {.op = "power_iteration"};
    iteration.in[0] = kernel_test_variable(w, FILL_NORMAL);
    iteration.in[1] = kernel_test_mutated(u, FILL_NORMAL);
    iteration.in[2] = kernel_test_mutated(v, FILL_NORMAL);
    iteration.out[0] = kernel_test_activation(u);
    iteration.out[1] = kernel_test_activation(v);
    kernel_test_arrivals(&iteration);

    struct kernel_test weight = {.op = "spectral_norm"};
    weight.in[0] = kernel_test_variable(w, FILL_NORMAL);
    weight.in[1] = kernel_test_activation(u);
    weight.in[2] = kernel_test_activation(v);
    weight.out[0] = kernel_test_activation(w);
    weight.out[1] = kernel_test_activation(SHAPE(1));
    kernel_test_arrivals(&weight);

    struct kernel_test grad = {.op = "spectral_norm_grad"};
    grad.in[0] = kernel_test_activation(w);
    grad.in[1] = kernel_test_variable(w, FILL_NORMAL);
    grad.in[2] = kernel_test_activation(u);
    grad.in[3] = kernel_test_activation(v);
    grad.in[4] = (struct tensor){.shape = SHAPE(1), .fill = FILL_POSITIVE};
    grad.out[0] = kernel_test_variable(w, FILL_NORMAL);
    kernel_test_arrivals(&grad);
}
ALL_ROWS(spectral_norm, spectral_rows)

int main(void)
{
    const TTest *const tests[] = {
        activations, activations_special, mul,        softmax, softmax_special,
        layer_norm,  layer_norm_grad,     avg_pool2d, cat,     spectral_norm,
    };
    return kernel_test_main("layers", tests, ROWS(tests));
}
