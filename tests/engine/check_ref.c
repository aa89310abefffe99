/* check_ref.c: the reference gradients are the derivatives of the reference forwards: central
 * differences in double on every element of every input. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/ops/attr.h"
#include "tests/lib/checks.h"
#include "tests/ref/ref.h"

#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

static const struct step step = {.seed = 3, .number = 2, .first_sample = 4, .loss_divisor = 5};

/* An op's node with its values' arrays: random inputs in [-1, 1), zeroed outputs. */
struct probe {
    struct node node;
    struct value values[NODE_MAX_IN + NODE_MAX_OUT];
    double *in[NODE_MAX_IN], *out[NODE_MAX_OUT];
};

static int64_t size_in(const struct probe *c, int k)
{
    return shape_count(&c->node.in[k]->shape);
}

static void add_in(struct probe *c, struct shape shape)
{
    int k = c->node.n_in++;
    c->values[k] = (struct value){.shape = shape};
    c->node.in[k] = &c->values[k];
    c->in[k] = calloc((size_t)shape_count(&shape), sizeof(double));
    for (int64_t i = 0; i < shape_count(&shape); i++) {
        uint32_t words[4];
        rng_block(rng_key(1, RNG_DATA, (uint64_t)k), 0, (uint64_t)i, words);
        c->in[k][i] = 2 * (double)rng_uniform(words[0]) - 1;
    }
}

static void add_out(struct probe *c, struct shape shape)
{
    int k = c->node.n_out++;
    c->values[NODE_MAX_IN + k] = (struct value){.shape = shape};
    c->node.out[k] = &c->values[NODE_MAX_IN + k];
    c->out[k] = calloc((size_t)shape_count(&shape), sizeof(double));
}

static void probe_free(struct probe *c)
{
    for (int k = 0; k < NODE_MAX_IN; k++)
        free(c->in[k]);
    for (int k = 0; k < NODE_MAX_OUT; k++)
        free(c->out[k]);
}

static void run(const char *op, struct probe *c)
{
    ref_find(op)(&c->node, c->in, c->out, &step);
}

/* A fixed random direction in the space of output 0. */
static double direction(int64_t i)
{
    uint32_t words[4];
    rng_block(rng_key(2, RNG_DATA, 0), 0, (uint64_t)i, words);
    return 2 * (double)rng_uniform(words[0]) - 1;
}

static double objective(const char *op, struct probe *c)
{
    run(op, c);
    double sum = 0;
    for (int64_t i = 0; i < shape_count(&c->node.out[0]->shape); i++)
        sum += c->out[0][i] * direction(i);
    return sum;
}

/* `gradient` is what the reference claims for d objective / d in[k]. */
static void check_input(const char *op, struct probe *c, int k, const double *gradient)
{
    const double h = 1e-5;
    for (int64_t i = 0; i < size_in(c, k); i++) {
        double at = c->in[k][i];
        c->in[k][i] = at + h;
        double above = objective(op, c);
        c->in[k][i] = at - h;
        double below = objective(op, c);
        c->in[k][i] = at;
        double numeric = (above - below) / (2 * h);
        ck_assert_msg(fabs(numeric - gradient[i]) <= 1e-7 * fmax(1, fabs(numeric)),
                      "%s: input %d, element %lld: %.12g by differences, %.12g by the reference",
                      op, k, (long long)i, numeric, gradient[i]);
    }
}

/* The gradient's node: its inputs are copied from the forward's values and the direction. */
static void set_direction(struct probe *c, int k)
{
    for (int64_t i = 0; i < size_in(c, k); i++)
        c->in[k][i] = direction(i);
}

static void set_copy(struct probe *c, int k, const double *from)
{
    memcpy(c->in[k], from, (size_t)size_in(c, k) * sizeof(double));
}

static const struct conv_row {
    struct shape x, w, y;
    struct conv2d_attr attr;
} conv_rows[] = {
    {{4, {2, 1, 4, 4}}, {4, {2, 1, 3, 3}}, {4, {2, 2, 4, 4}}, {{1, 1}, {1, 1}, {1, 1}, 1}},
    {{4, {1, 3, 7, 5}}, {4, {4, 3, 3, 2}}, {4, {1, 4, 3, 4}}, {{2, 1}, {1, 0}, {2, 1}, 1}},
    {{4, {2, 4, 5, 6}}, {4, {6, 2, 2, 3}}, {4, {2, 6, 4, 3}}, {{1, 2}, {0, 2}, {1, 2}, 2}},
};

START_TEST(conv2d)
{
    const struct conv_row *r = &conv_rows[_i];
    struct shape bias = SHAPE(r->w.dim[0]);
    struct probe y = {.node.attr = &r->attr}, gx = y, gw = y;
    add_in(&y, r->x), add_in(&y, r->w), add_in(&y, bias), add_out(&y, r->y);
    add_in(&gx, r->y), add_in(&gx, r->w), add_out(&gx, r->x);
    add_in(&gw, r->x), add_in(&gw, r->y), add_out(&gw, r->w), add_out(&gw, bias);
    set_direction(&gx, 0), set_copy(&gx, 1, y.in[1]);
    set_copy(&gw, 0, y.in[0]), set_direction(&gw, 1);
    run("conv2d_input_grad", &gx);
    run("conv2d_weight_grad", &gw);
    check_input("conv2d", &y, 0, gx.out[0]);
    check_input("conv2d", &y, 1, gw.out[0]);
    check_input("conv2d", &y, 2, gw.out[1]);
    probe_free(&y), probe_free(&gx), probe_free(&gw);
}
END_TEST

START_TEST(linear)
{
    struct shape x = SHAPE(2, 3, 5), w = SHAPE(4, 5), b = SHAPE(4), out = SHAPE(2, 3, 4);
    struct probe y = {0}, gx = y, gw = y;
    add_in(&y, x), add_in(&y, w), add_in(&y, b), add_out(&y, out);
    add_in(&gx, out), add_in(&gx, w), add_out(&gx, x);
    add_in(&gw, x), add_in(&gw, out), add_out(&gw, w), add_out(&gw, b);
    set_direction(&gx, 0), set_copy(&gx, 1, y.in[1]);
    set_copy(&gw, 0, y.in[0]), set_direction(&gw, 1);
    run("linear_input_grad", &gx);
    run("linear_weight_grad", &gw);
    check_input("linear", &y, 0, gx.out[0]);
    check_input("linear", &y, 1, gw.out[0]);
    check_input("linear", &y, 2, gw.out[1]);
    probe_free(&y), probe_free(&gx), probe_free(&gw);
}
END_TEST

START_TEST(batch_norm)
{
    static const struct batch_norm_attr attr = {1e-3, 0.1};
    static const struct shape shapes[] = {{4, {3, 2, 2, 3}}, {2, {5, 3}}};
    struct shape x = shapes[_i], channels = SHAPE(x.dim[1]);
    struct probe y = {.node.attr = &attr}, g = y;
    add_in(&y, x), add_in(&y, channels), add_in(&y, channels);
    add_out(&y, x), add_out(&y, channels), add_out(&y, channels);
    run("batch_norm", &y);
    add_in(&g, x), add_in(&g, x), add_in(&g, channels), add_in(&g, channels), add_in(&g, channels);
    add_out(&g, x), add_out(&g, channels), add_out(&g, channels);
    set_copy(&g, 0, y.in[0]), set_direction(&g, 1), set_copy(&g, 2, y.in[1]);
    set_copy(&g, 3, y.out[1]), set_copy(&g, 4, y.out[2]);
    run("batch_norm_grad", &g);
    for (int k = 0; k < 3; k++)
        check_input("batch_norm", &y, k, g.out[k]);
    probe_free(&y), probe_free(&g);
}
END_TEST

START_TEST(layer_norm)
{
    static const struct layer_norm_attr attr = {1e-3, 2};
    struct shape x = SHAPE(3, 2, 2, 3), normalized = SHAPE(2, 3), lead = SHAPE(3, 2);
    struct probe y = {.node.attr = &attr}, g = y;
    add_in(&y, x), add_in(&y, normalized), add_in(&y, normalized);
    add_out(&y, x), add_out(&y, lead), add_out(&y, lead);
    run("layer_norm", &y);
    add_in(&g, x), add_in(&g, x), add_in(&g, normalized), add_in(&g, lead), add_in(&g, lead);
    add_out(&g, x), add_out(&g, normalized), add_out(&g, normalized);
    set_copy(&g, 0, y.in[0]), set_direction(&g, 1), set_copy(&g, 2, y.in[1]);
    set_copy(&g, 3, y.out[1]), set_copy(&g, 4, y.out[2]);
    run("layer_norm_grad", &g);
    for (int k = 0; k < 3; k++)
        check_input("layer_norm", &y, k, g.out[k]);
    probe_free(&y), probe_free(&g);
}
END_TEST

/* The gradient of one of mul's inputs is mul of the output's and of the others. */
START_TEST(mul)
{
    struct shape x = SHAPE(3, 5);
    struct probe y = {0}, g = y;
    add_in(&y, x), add_in(&y, x), add_in(&y, x), add_out(&y, x);
    add_in(&g, x), add_in(&g, x), add_in(&g, x), add_out(&g, x);
    set_direction(&g, 0), set_copy(&g, 1, y.in[0]), set_copy(&g, 2, y.in[2]);
    run("mul", &g);
    check_input("mul", &y, 1, g.out[0]);
    probe_free(&y), probe_free(&g);
}
END_TEST

/* The gradient of one of cat's inputs is a slice. */
START_TEST(cat)
{
    static const struct cat_attr attr = {.part = {{1, 0}, {1, 2}, {1, 5}}};
    struct probe y = {.node.attr = &attr}, g = {.node.attr = &attr.part[1]};
    struct shape whole = SHAPE(2, 6, 2);
    add_in(&y, SHAPE(2, 2, 2)), add_in(&y, SHAPE(2, 3, 2)), add_in(&y, SHAPE(2, 1, 2));
    add_out(&y, whole);
    add_in(&g, whole), add_out(&g, SHAPE(2, 3, 2)), set_direction(&g, 0);
    run("slice", &g);
    check_input("cat", &y, 1, g.out[0]);
    probe_free(&y), probe_free(&g);
}
END_TEST

START_TEST(embedding)
{
    static const double index[] = {3, 1, 0, 3, 2, 3};
    static const struct embedding_attr attr = {.padding_row = -1};
    struct shape x = SHAPE(2, 3), w = SHAPE(4, 5), out = SHAPE(2, 3, 5);
    struct probe y = {.node.attr = &attr}, g = y;
    add_in(&y, x), add_in(&y, w), add_out(&y, out), set_copy(&y, 0, index);
    add_in(&g, x), add_in(&g, out), add_out(&g, w), set_copy(&g, 0, index), set_direction(&g, 1);
    run("embedding_weight_grad", &g);
    check_input("embedding", &y, 1, g.out[0]);
    probe_free(&y), probe_free(&g);
}
END_TEST

/* u and v are constants. */
START_TEST(spectral_norm)
{
    struct shape w = SHAPE(3, 2, 2), u = SHAPE(3), v = SHAPE(4);
    struct probe y = {0}, g = {0};
    add_in(&y, w), add_in(&y, u), add_in(&y, v), add_out(&y, w), add_out(&y, SHAPE(1));
    run("spectral_norm", &y);
    add_in(&g, w), add_in(&g, w), add_in(&g, u), add_in(&g, v), add_in(&g, SHAPE(1));
    add_out(&g, w), set_direction(&g, 0), set_copy(&g, 1, y.in[0]), set_copy(&g, 2, y.in[1]);
    set_copy(&g, 3, y.in[2]), set_copy(&g, 4, y.out[1]);
    run("spectral_norm_grad", &g);
    check_input("spectral_norm", &y, 0, g.out[0]);
    probe_free(&y), probe_free(&g);
}
END_TEST

START_TEST(positional_embedding)
{
    struct shape x = SHAPE(2, 3, 4), w = SHAPE(5, 4);
    struct probe y = {0}, g = {0};
    add_in(&y, x), add_in(&y, w), add_out(&y, x);
    add_in(&g, x), add_out(&g, w), set_direction(&g, 0);
    run("positional_embedding_weight_grad", &g);
    check_input("positional_embedding", &y, 1, g.out[0]);
    probe_free(&y), probe_free(&g);
}
END_TEST

START_TEST(select_last)
{
    static const double lengths[] = {2, 4, 1};
    struct shape x = SHAPE(3, 4, 2), n = SHAPE(3), out = SHAPE(3, 2);
    struct probe y = {0}, g = {0};
    add_in(&y, x), add_in(&y, n), add_out(&y, out), set_copy(&y, 1, lengths);
    add_in(&g, out), add_in(&g, n), add_out(&g, x), set_direction(&g, 0), set_copy(&g, 1, lengths);
    run("select_last_grad", &g);
    check_input("select_last", &y, 0, g.out[0]);
    probe_free(&y), probe_free(&g);
}
END_TEST

/* By rows of every cell, there and back, without and with lengths, from what forward saved and from
 * nothing. */
static const struct recurrent_row {
    struct recurrent_attr attr;
    int gates;
    bool lengths;
} recurrent_rows[] = {
    {{CELL_LSTM, 1, 0}, 4, false},  {{CELL_LSTM, -1, 0}, 4, true}, {{CELL_GRU, 1, 0}, 3, true},
    {{CELL_GRU, -1, 0}, 3, false},  {{CELL_TANH, 1, 0}, 1, true},  {{CELL_TANH, -1, 0}, 1, true},
    {{CELL_RELU, -1, 0}, 1, false}, {{CELL_LSTM, 1, 2}, 4, true},  {{CELL_GRU, -1, 3}, 3, true},
};

enum { RECURRENT_PARAMETERS = 5 }; /* x, the weights, the biases */

START_TEST(recurrent)
{
    static const double lengths[] = {2, 4, 1};
    const struct recurrent_row *r = &recurrent_rows[_i];
    const bool saved = r->attr.checkpoint_steps == 0;
    const int64_t rows = 2 * r->gates;
    const struct shape parameters[RECURRENT_PARAMETERS] = {
        SHAPE(3, 4, 3), SHAPE(rows, 3), SHAPE(rows, 2), SHAPE(rows), SHAPE(rows)};
    struct shape out = SHAPE(3, 4, 2), state = SHAPE(4, 3, 2), gates = SHAPE(4, 3, rows);
    struct probe y = {.node.attr = &r->attr}, g = y;
    add_in(&g, out);
    for (int i = 0; i < RECURRENT_PARAMETERS; i++)
        add_in(&y, parameters[i]), add_in(&g, parameters[i]), add_out(&g, parameters[i]);
    add_out(&y, out);
    if (saved)
        add_out(&y, state), add_out(&y, gates);
    if (r->lengths)
        add_in(&y, SHAPE(3)), set_copy(&y, 5, lengths);
    run("recurrent", &y);
    set_direction(&g, 0);
    for (int i = 0; i < RECURRENT_PARAMETERS; i++)
        set_copy(&g, 1 + i, y.in[i]);
    if (r->lengths)
        add_in(&g, SHAPE(3)), set_copy(&g, 6, lengths);
    if (saved) {
        g.node.n_in = 7;
        add_in(&g, out), add_in(&g, state), add_in(&g, gates);
        set_copy(&g, 7, y.out[0]), set_copy(&g, 8, y.out[1]), set_copy(&g, 9, y.out[2]);
    }
    run("recurrent_grad", &g);
    for (int i = 0; i < RECURRENT_PARAMETERS; i++)
        check_input("recurrent", &y, i, g.out[i]);
    probe_free(&y), probe_free(&g);
}
END_TEST

/* Ops of one input: the gradient takes the direction at `at_direction`, and at the other place the
 * forward's output `saved`. */
enum { SAVED_INPUT = -2 };

static const struct unary_row {
    const char *op, *grad;
    const void *attr;
    struct shape x, y;
    int at_direction;
    int saved; /* -1: nothing; SAVED_INPUT: the input instead */
} unary_rows[] = {
    {"gelu",
     "gelu_grad",
     &(const struct gelu_attr){false},
     {2, {3, 5}},
     {2, {3, 5}},
     1,
     SAVED_INPUT},
    {"gelu",
     "gelu_grad",
     &(const struct gelu_attr){true},
     {2, {3, 5}},
     {2, {3, 5}},
     1,
     SAVED_INPUT},
    {"silu", "silu_grad", NULL, {2, {3, 5}}, {2, {3, 5}}, 1, SAVED_INPUT},
    {"sigmoid", "sigmoid_grad", NULL, {2, {3, 5}}, {2, {3, 5}}, 1, 0},
    {"tanh", "tanh_grad", NULL, {2, {3, 5}}, {2, {3, 5}}, 1, 0},
    {"softmax", "softmax_grad", &(const struct softmax_attr){1}, {2, {3, 5}}, {2, {3, 5}}, 1, 0},
    {"softmax",
     "softmax_grad",
     &(const struct softmax_attr){1},
     {3, {2, 4, 3}},
     {3, {2, 4, 3}},
     1,
     0},
    {"log_softmax",
     "log_softmax_grad",
     &(const struct softmax_attr){2},
     {4, {2, 2, 3, 2}},
     {4, {2, 2, 3, 2}},
     1,
     0},
    {"avg_pool2d",
     "avg_pool2d_grad",
     &(const struct avg_pool2d_attr){{3, 2}, {2, 1}, {1, 1}, true, 0},
     {4, {2, 2, 6, 4}},
     {4, {2, 2, 4, 5}}, /* ceil_mode */
     0,
     -1},
    {"avg_pool2d",
     "avg_pool2d_grad",
     &(const struct avg_pool2d_attr){{3, 3}, {2, 2}, {1, 1}, false, 0},
     {4, {1, 2, 5, 6}},
     {4, {1, 2, 3, 3}},
     0,
     -1},
    {"attention",
     "attention_grad",
     &(const struct attention_attr){2, false, 0, 0},
     {3, {2, 5, 12}},
     {3, {2, 5, 4}},
     1,
     SAVED_INPUT},
    {"attention",
     "attention_grad",
     &(const struct attention_attr){1, true, 0.4, 2},
     {3, {2, 4, 9}},
     {3, {2, 4, 3}},
     1,
     SAVED_INPUT},
    {"relu", "relu_grad", NULL, {2, {3, 5}}, {2, {3, 5}}, 1, 0},
    {"dropout",
     "dropout_grad",
     &(const struct dropout_attr){.p = 0.4, .layer = 2},
     {4, {2, 2, 3, 3}},
     {4, {2, 2, 3, 3}},
     0,
     -1},
    {"max_pool2d",
     "max_pool2d_grad",
     &(const struct max_pool2d_attr){{3, 2}, {2, 1}, {1, 1}, {1, 2}, {1, 1}},
     {4, {2, 2, 5, 6}},
     {4, {2, 2, 3, 6}},
     0,
     1},
    {"adaptive_avg_pool2d",
     "adaptive_avg_pool2d_grad",
     NULL,
     {4, {2, 2, 5, 3}},
     {4, {2, 2, 2, 4}},
     0,
     -1},
};

START_TEST(unary)
{
    const struct unary_row *r = &unary_rows[_i];
    struct probe y = {.node.attr = r->attr}, g = y;
    add_in(&y, r->x), add_out(&y, r->y), add_out(&y, r->y);
    run(r->op, &y);
    struct shape saved = r->saved == SAVED_INPUT ? r->x : r->y;
    add_in(&g, r->at_direction == 0 ? r->y : saved), add_out(&g, r->x);
    if (r->saved != -1) {
        add_in(&g, r->at_direction == 0 ? saved : r->y);
        set_copy(&g, 1 - r->at_direction, r->saved == SAVED_INPUT ? y.in[0] : y.out[r->saved]);
    }
    set_direction(&g, r->at_direction);
    run(r->grad, &g);
    check_input(r->op, &y, 0, g.out[0]);
    probe_free(&y), probe_free(&g);
}
END_TEST

/* A loss gives its own gradient, divided by the divisor. */
static void check_loss(const char *op, const void *attr, struct shape x, struct shape target,
                       bool classes)
{
    struct probe c = {.node.attr = attr};
    add_in(&c, x), add_in(&c, target), add_out(&c, SHAPE(1)), add_out(&c, x);
    for (int64_t i = 0; classes && i < shape_count(&target); i++)
        c.in[1][i] = (double)(i * 2 % x.dim[x.rank - 1]);
    run(op, &c);
    double gradient[64];
    ck_assert_int_le((int)shape_count(&x), ROWS(gradient));
    for (int64_t i = 0; i < shape_count(&x); i++)
        gradient[i] = c.out[1][i] * step.loss_divisor * direction(0);
    check_input(op, &c, 0, gradient);
    probe_free(&c);
}

START_TEST(losses)
{
    const double weight[] = {0.5, 2, 1.25};
    const struct class_loss_attr plain = {.ignore_index = -100}, ignoring = {.ignore_index = 2},
                                 smooth = {.label_smoothing = 0.2, .ignore_index = 1},
                                 weighted = {.label_smoothing = 0.3,
                                             .ignore_index = -100,
                                             .weight = weight};
    check_loss("cross_entropy", &plain, SHAPE(4, 3), SHAPE(4), true);
    check_loss("cross_entropy", &ignoring, SHAPE(2, 4, 3), SHAPE(2, 4), true);
    check_loss("cross_entropy", &smooth, SHAPE(5, 3), SHAPE(5), true);
    check_loss("cross_entropy", &weighted, SHAPE(4, 3), SHAPE(4), true);
    check_loss("nll", &ignoring, SHAPE(2, 4, 3), SHAPE(2, 4), true);
    check_loss("nll", &weighted, SHAPE(4, 3), SHAPE(4), true);
    check_loss("mse", NULL, SHAPE(4, 3), SHAPE(4, 3), false);
    check_loss("l1", NULL, SHAPE(4, 3), SHAPE(4, 3), false);
    check_loss("bce_with_logits", &(struct bce_attr){NULL, 0}, SHAPE(4, 3), SHAPE(4, 3), false);
    check_loss("bce_with_logits", &(struct bce_attr){weight, 3}, SHAPE(4, 3), SHAPE(4, 3), false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ref");
    TCase *tcase = checks_case(suite, "gradients", 0);
    tcase_add_loop_test(tcase, conv2d, 0, ROWS(conv_rows));
    tcase_add_test(tcase, linear);
    tcase_add_loop_test(tcase, batch_norm, 0, 2);
    tcase_add_test(tcase, layer_norm);
    tcase_add_test(tcase, mul);
    tcase_add_test(tcase, cat);
    tcase_add_test(tcase, embedding);
    tcase_add_test(tcase, spectral_norm);
    tcase_add_test(tcase, positional_embedding);
    tcase_add_test(tcase, select_last);
    tcase_add_loop_test(tcase, recurrent, 0, ROWS(recurrent_rows));
    tcase_add_loop_test(tcase, unary, 0, ROWS(unary_rows));
    tcase_add_test(tcase, losses);
    return checks_run(suite);
}
