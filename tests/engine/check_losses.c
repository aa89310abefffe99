/* check_losses.c: the kernels of losses, and of predictions, against their references. */
#include <math.h>

#include "engine/ops/attr.h"
#include "tests/engine/kernel_test.h"

/* Of the whole batch, or one a sample. */
static struct tensor loss(int64_t n)
{
    return (struct tensor){.shape = SHAPE(n), .fill = FILL_NORMAL, .dtype = DTYPE_F64};
}

/* Logits with the classes last; the attributes of cross_entropy and nll, all with weights or
 * without. A class that is ignored is the lowest. */
static const struct class_row {
    struct shape output;
    double label_smoothing;
    int64_t ignore_index;
    bool weighted;
} class_rows[] = {
    {{2, {1, 1}}, 0, -100, false},     {{2, {1, 2}}, 0.1, -100, true},
    {{2, {5, 10}}, 0, 3, false},       {{2, {64, 10}}, 0, 0, true},
    {{2, {20, 1000}}, 0, 7, false},    {{3, {2, 7, 5}}, 0, -100, false},
    {{3, {1, 33, 11}}, 0.25, 1, true}, {{4, {3, 2, 4, 9}}, 1, -1, true},
    {{2, {7, 200}}, 0.5, 1, false},    {{2, {300, 50}}, 0, -100, true},
};

static struct tensor class_target(struct shape output)
{
    output.rank--;
    return (struct tensor){.shape = output, .fill = FILL_CLASS, .dtype = DTYPE_I64};
}

static void check_class_loss(const char *op, const struct class_row *r, double label_smoothing)
{
    double weight[1000];
    for (int c = 0; c < ROWS(weight); c++)
        weight[c] = 0.25 + c % 7;
    const struct class_loss_attr attr = {
        .label_smoothing = label_smoothing,
        .ignore_index = r->ignore_index,
        .weight = r->weighted ? weight : NULL,
    };
    struct kernel_test test = {.op = op, .attr = &attr, .step = {.loss_divisor = 70}};
    test.in[0] = kernel_test_activation(r->output);
    test.in[1] = class_target(r->output);
    test.out[0] = loss(r->output.dim[0]);
    kernel_test_arrivals(&test);
    test.out[0] = loss(1);
    kernel_test_arrivals(&test);
    test.out[1] = kernel_test_activation(r->output);
    kernel_test_arrivals(&test);
}

static void cross_entropy_row(int row)
{
    check_class_loss("cross_entropy", &class_rows[row], class_rows[row].label_smoothing);
}
ALL_ROWS(cross_entropy, class_rows)

static void nll_row(int row)
{
    check_class_loss("nll", &class_rows[row], 0);
}
ALL_ROWS(nll, class_rows)

/* Logits whose exponentials overflow. */
START_TEST(cross_entropy_large)
{
    static const float x[6] = {1000, 999, -1000, -5000, -5001, -5000};
    const struct class_loss_attr attr = {.label_smoothing = 0.1, .ignore_index = -100};
    struct kernel_test test = {
        .op = "cross_entropy", .attr = &attr, .step = {.loss_divisor = 2}, .override = x};
    test.in[0] = test.out[1] = kernel_test_activation(SHAPE(2, 3));
    test.in[1] = class_target(SHAPE(2, 3));
    test.out[0] = loss(1);
    kernel_test_run(&test);
    ck_assert(isfinite(*(double *)test.out[0].memory));
    kernel_test_done(&test);
}
END_TEST

static const struct shape shapes[] = {
    {2, {1, 1}},        {2, {3, 5}},         {4, {2, 3, 5, 7}},  {4, {1, 20, 3, 3}},
    {4, {2, 16, 4, 4}}, {4, {3, 33, 17, 9}}, {3, {2, 100, 101}},
};

static void check_value_loss(const char *op, const void *attr, struct shape shape, enum fill target)
{
    struct kernel_test test = {.op = op, .attr = attr, .step = {.loss_divisor = 300}};
    test.in[0] = kernel_test_activation(shape);
    test.in[1] = (struct tensor){.shape = shape, .fill = target};
    test.out[0] = loss(shape.dim[0]);
    kernel_test_arrivals(&test);
    test.out[0] = loss(1);
    kernel_test_arrivals(&test);
    test.out[1] = kernel_test_activation(shape);
    kernel_test_arrivals(&test);
}

static void mse_row(int row)
{
    check_value_loss("mse", NULL, shapes[row], FILL_NORMAL);
}
ALL_ROWS(mse, shapes)

static void l1_row(int row)
{
    check_value_loss("l1", NULL, shapes[row], FILL_NORMAL);
}
ALL_ROWS(l1, shapes)

static void bce_with_logits_row(int row)
{
    double pos_weight[128];
    for (int c = 0; c < ROWS(pos_weight); c++)
        pos_weight[c] = 0.5 + c % 5;
    const struct shape *shape = &shapes[row];
    const int64_t counts[] = {0, 1, shape->dim[shape->rank - 1]};
    for (int i = 0; i < ROWS(counts); i++) {
        const struct bce_attr attr = {.pos_weight = pos_weight, .n_pos_weight = counts[i]};
        check_value_loss("bce_with_logits", &attr, *shape, FILL_POSITIVE);
    }
}
ALL_ROWS(bce_with_logits, shapes)

/* Logits whose exponentials overflow: each loss is known. */
START_TEST(bce_large)
{
    static const float x[4] = {1000, -1000, 1000, -1000};
    static double y[4] = {1, 0, 0, 1};
    const struct bce_attr attr = {.n_pos_weight = 0};
    for (int k = 0; k < 2; k++) { /* both right, both wrong */
        struct kernel_test test = {.op = "bce_with_logits",
                                   .attr = &attr,
                                   .step = {.loss_divisor = 1},
                                   .override = x + 2 * k};
        test.in[0] = test.in[1] = test.out[1] = kernel_test_activation(SHAPE(1, 2));
        test.in[1].reference = y + 2 * k;
        test.out[0] = loss(1);
        kernel_test_run(&test);
        const float *grad = test.out[1].memory;
        ck_assert_double_eq(*(double *)test.out[0].memory, 2000.0 * k);
        ck_assert_float_eq(grad[0], (float)k);
        ck_assert_float_eq(grad[1], (float)-k);
        test.in[1].reference = NULL;
        kernel_test_done(&test);
    }
}
END_TEST

START_TEST(l1_of_equals)
{
    static const float x[2] = {3, -1};
    static double y[2] = {3, 2};
    struct kernel_test test = {.op = "l1", .step = {.loss_divisor = 1}, .override = x};
    test.in[0] = test.in[1] = test.out[1] = kernel_test_activation(SHAPE(1, 2));
    test.in[1].reference = y;
    test.out[0] = loss(1);
    kernel_test_run(&test);
    ck_assert_float_eq(*(float *)test.out[1].memory, 0);
    test.in[1].reference = NULL;
    kernel_test_done(&test);
}
END_TEST

static void argmax_row(int row)
{
    struct kernel_test test = {.op = "argmax"};
    test.in[0] = kernel_test_activation(class_rows[row].output);
    test.out[0] = class_target(class_rows[row].output);
    kernel_test_arrivals(&test);
}
ALL_ROWS(argmax, class_rows)

START_TEST(argmax_ties)
{
    static const float x[12] = {1, 3, 3, 2, 0, NAN, 5, NAN, -1, -1, -1, -1};
    struct kernel_test test = {.op = "argmax", .override = x};
    test.in[0] = kernel_test_activation(SHAPE(3, 4));
    test.out[0] = class_target(SHAPE(3, 4));
    kernel_test_run(&test);
    const int64_t *prediction = test.out[0].memory;
    ck_assert_int_eq(prediction[0], 1);
    ck_assert_int_eq(prediction[1], 1);
    ck_assert_int_eq(prediction[2], 0);
    kernel_test_done(&test);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        cross_entropy,   nll,       cross_entropy_large, mse,    l1,
        bce_with_logits, bce_large, l1_of_equals,        argmax, argmax_ties,
    };
    return kernel_test_main("losses", tests, ROWS(tests));
}
