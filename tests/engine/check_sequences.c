/* check_sequences.c: the kernels of sequences of tokens against their references. */
#include <string.h>

#include "engine/ops/attr.h"
#include "tests/engine/kernel_test.h"
#include "tests/engine/low.h"

/* Embedding */

static const struct embedding_row {
    struct shape x;
    int64_t rows, size, padding_row;
} embedding_rows[] = {
    {{1, {1}}, 1, 1, -1},       {{2, {1, 7}}, 5, 3, -1},        {{2, {3, 5}}, 4, 16, 2},
    {{2, {16, 65}}, 97, 33, 0}, {{3, {2, 3, 4}}, 1000, 64, -1}, {{2, {32, 128}}, 256, 65, 255},
};

static struct tensor integers(struct shape shape, enum fill fill, int64_t limit)
{
    return (struct tensor){.shape = shape, .fill = fill, .dtype = DTYPE_I64, .limit = limit};
}

static void embedding_row(int row)
{
    const struct embedding_row *r = &embedding_rows[row];
    const struct embedding_attr attr = {r->padding_row};
    struct shape y = r->x;
    y.dim[y.rank++] = r->size;
    struct kernel_test test = {.op = "embedding", .attr = &attr};
    test.in[0] = integers(r->x, FILL_INDEX, r->rows);
    test.in[1] = kernel_test_variable(SHAPE(r->rows, r->size), FILL_NORMAL);
    test.out[0] = kernel_test_activation(y);
    kernel_test_arrivals(&test);
    struct kernel_test grad = {.op = "embedding_weight_grad", .attr = &attr};
    grad.in[0] = test.in[0];
    grad.in[1] = kernel_test_activation(y);
    grad.out[0] = kernel_test_variable(SHAPE(r->rows, r->size), FILL_NORMAL);
    kernel_test_arrivals(&grad);
}
ALL_ROWS(embedding, embedding_rows)

/* PositionalEmbedding */

static const struct positional_row {
    struct shape x;
    int64_t rows;
} positional_rows[] = {
    {{3, {1, 1, 1}}, 1},
    {{3, {1, 5, 3}}, 9},
    {{3, {7, 3, 33}}, 3},
    {{3, {16, 65, 48}}, 100},
};

static void positional_row(int row)
{
    const struct positional_row *r = &positional_rows[row];
    struct shape w = SHAPE(r->rows, r->x.dim[2]);
    struct kernel_test test = {.op = "positional_embedding"};
    test.in[0] = test.out[0] = kernel_test_activation(r->x);
    test.in[1] = kernel_test_variable(w, FILL_NORMAL);
    kernel_test_arrivals(&test);
    struct kernel_test grad = {.op = "positional_embedding_weight_grad"};
    grad.in[0] = kernel_test_activation(r->x);
    grad.out[0] = kernel_test_variable(w, FILL_NORMAL);
    kernel_test_arrivals(&grad);
}
ALL_ROWS(positional, positional_rows)

/* SelectLast */

static const struct shape select_rows[] = {
    {3, {1, 1, 1}},
    {3, {1, 5, 3}},
    {3, {7, 3, 33}},
    {4, {5, 6, 2, 3}},
};

static void select_last_row(int row)
{
    struct shape x = select_rows[row], y = {.rank = x.rank - 1, .dim = {x.dim[0]}};
    memcpy(y.dim + 1, x.dim + 2, (size_t)(x.rank - 2) * sizeof x.dim[0]);
    struct kernel_test test = {.op = "select_last"}, grad = {.op = "select_last_grad"};
    test.in[0] = grad.out[0] = kernel_test_activation(x);
    test.out[0] = grad.in[0] = kernel_test_activation(y);
    kernel_test_arrivals(&test);
    kernel_test_arrivals(&grad);
    test.in[1] = grad.in[1] = integers(SHAPE(x.dim[0]), FILL_LENGTH, x.dim[1]);
    kernel_test_arrivals(&test);
    kernel_test_arrivals(&grad);
}
ALL_ROWS(select_last, select_rows)

/* SelfAttention's core */

static const struct attention_row {
    int64_t n, steps, size;
    struct attention_attr attr; /* heads, causal, dropout, layer */
} attention_rows[] = {
    {1, 1, 1, {1, false, 0, 0}},     {1, 1, 6, {3, true, 0, 0}},     {2, 5, 6, {2, false, 0, 0}},
    {3, 7, 33, {3, true, 0, 0}},     {2, 64, 32, {4, false, 0, 0}},  {2, 65, 48, {3, true, 0, 0}},
    {1, 200, 40, {5, true, 0, 0}},   {1, 300, 16, {1, false, 0, 0}}, {2, 9, 8, {2, true, 0.3, 4}},
    {2, 70, 24, {2, false, 0.5, 1}}, {1, 5, 4, {1, false, 1, 1}},
};

static void attention_row(int row)
{
    const struct attention_row *r = &attention_rows[row];
    struct shape y = SHAPE(r->n, r->steps, r->size), qkv = SHAPE(r->n, r->steps, 3 * r->size);
    struct kernel_test eval = {.op = "attention", .attr = &r->attr};
    eval.step = (struct step){.seed = 11, .number = 5, .first_sample = 60};
    eval.in[0] = kernel_test_activation(qkv);
    eval.out[0] = kernel_test_activation(y);
    struct kernel_test forward = eval;
    kernel_test_arrivals(&eval);
    forward.out[1] = kernel_test_activation(SHAPE(r->n, r->attr.heads, r->steps));
    kernel_test_run(&forward);
    struct kernel_test grad = {.op = "attention_grad", .attr = &r->attr, .step = forward.step};
    grad.in[0] = grad.out[0] = kernel_test_activation(qkv);
    grad.in[1] = kernel_test_activation(y);
    grad.in[2] = forward.out[0];
    grad.in[3] = forward.out[1];
    for (int i = 2; i <= 3; i++) {
        grad.in[i].memory = NULL;
        grad.in[i].layout = NULL;
    }
    kernel_test_run(&grad);
    forward.out[0].reference = forward.out[1].reference = NULL; /* grad's now */
    kernel_test_done(&grad);
    kernel_test_done(&forward);
}
ALL_ROWS(attention, attention_rows)

/* Two chunks of a batch draw the mask that the whole batch draws: a sample's output is its own. */
START_TEST(attention_chunks)
{
    static const struct attention_attr attr = {2, true, 0.5, 1};
    struct kernel_test whole = {.op = "attention", .attr = &attr};
    whole.step = (struct step){.seed = 2, .number = 9, .first_sample = 30};
    whole.in[0] = (struct tensor){.shape = SHAPE(3, 4, 12), .fill = FILL_ZERO};
    whole.in[0].fill = FILL_POSITIVE;
    whole.out[0] = kernel_test_activation(SHAPE(3, 4, 4));
    kernel_test_run(&whole);
    struct kernel_test last = whole;
    float x[4 * 12];
    for (int i = 0; i < 4 * 12; i++)
        x[i] = (float)whole.in[0].reference[2 * 4 * 12 + i];
    last.override = x;
    last.step.first_sample = 32;
    last.in[0] = (struct tensor){.shape = SHAPE(1, 4, 12), .fill = FILL_POSITIVE};
    last.out[0] = kernel_test_activation(SHAPE(1, 4, 4));
    kernel_test_run(&last);
    size_t bytes = 2 * 4 * 4 * dtype_size(whole.out[0].dtype); /* of two samples */
    ck_assert_mem_eq((char *)whole.out[0].memory + bytes, last.out[0].memory, bytes / 2);
    kernel_test_done(&whole);
    kernel_test_done(&last);
}
END_TEST
/* LSTM, GRU, RNN */

static const int gates[CELL_COUNT] = {
    [CELL_LSTM] = 4, [CELL_GRU] = 3, [CELL_TANH] = 1, [CELL_RELU] = 1};

/* Few steps where there are many weights: such large ones as these double an error at each. */
static const struct recurrent_row {
    int64_t samples, steps, features, size, checkpoint_steps;
} recurrent_rows[] = {
    {1, 1, 1, 1, 1},   {1, 7, 2, 3, 2},    {5, 1, 33, 33, 3}, {3, 4, 17, 17, 3},
    {16, 3, 9, 48, 1}, {65, 3, 24, 20, 2}, {2, 70, 3, 2, 20}, {260, 3, 7, 5, 2},
};

/* Gives the test what forward saves in training; whether that is anything. */
static bool save(struct kernel_test *test)
{
    const struct recurrent_attr *attr = test->attr;
    int64_t samples = test->in[0].shape.dim[0], steps = test->in[0].shape.dim[1];
    int64_t size = test->in[2].shape.dim[1], every = attr->checkpoint_steps;
    bool lstm = attr->cell == CELL_LSTM;
    if (every > 0)
        test->out[1] =
            kernel_test_activation(SHAPE((steps + every - 1) / every, lstm ? 2 : 1, samples, size));
    else if (lstm || attr->cell == CELL_GRU)
        test->out[1] = kernel_test_activation(SHAPE(steps, samples, size));
    if (every == 0 && test->out[1].fill != FILL_ABSENT)
        test->out[2] = kernel_test_activation(SHAPE(steps, samples, test->in[2].shape.dim[0]));
    return test->out[1].fill != FILL_ABSENT;
}

/* The reference's values as another test's input. */
static struct tensor taken(const struct tensor *from)
{
    struct tensor tensor = *from;
    tensor.memory = NULL;
    tensor.layout = NULL;
    return tensor;
}

/* Forward in training and in evaluation, and back from what it saved. */
static void check_recurrent(struct kernel_test test)
{
    const struct recurrent_attr *attr = test.attr;
    struct shape x = test.in[0].shape;
    struct kernel_test grad = {.op = "recurrent_grad", .attr = attr};
    test.op = "recurrent";
    test.out[0] = kernel_test_activation(SHAPE(x.dim[0], x.dim[1], test.in[2].shape.dim[1]));
    struct kernel_test saved = test;
    kernel_test_arrivals(&test);
    if (save(&test)) {
        saved = test;
        kernel_test_arrivals(&test);
    }
    kernel_test_run(&saved);
    grad.in[0] = kernel_test_activation(saved.out[0].shape);
    for (int i = 0; i < 6; i++)
        grad.in[1 + i] = taken(&saved.in[i]);
    if (attr->checkpoint_steps == 0)
        grad.in[7] = taken(&saved.out[0]);
    grad.in[8] = taken(&saved.out[1]);
    grad.in[9] = taken(&saved.out[2]);
    grad.out[0] = kernel_test_activation(x);
    for (int i = 1; i < 5; i++)
        if (test.in[i].fill != FILL_ABSENT)
            grad.out[i] = kernel_test_variable(test.in[i].shape, FILL_NORMAL);
    kernel_test_run(&grad);
    for (int i = 0; i < NODE_MAX_IN; i++)
        saved.in[i].reference = NULL; /* the gradient's now */
    for (int i = attr->checkpoint_steps > 0; i < NODE_MAX_OUT; i++)
        saved.out[i].reference = NULL;
    kernel_test_done(&grad);
    kernel_test_done(&saved);
}

static void check_cell(const struct recurrent_row *r, struct recurrent_attr attr)
{
    int64_t width = gates[attr.cell] * r->size;
    struct kernel_test test = {.attr = &attr};
    test.in[0] = kernel_test_activation(SHAPE(r->samples, r->steps, r->features));
    test.in[1] = kernel_test_variable(SHAPE(width, r->features), FILL_NORMAL);
    test.in[2] = kernel_test_variable(SHAPE(width, r->size), FILL_NORMAL);
    check_recurrent(test);
    test.in[3] = test.in[4] = kernel_test_variable(SHAPE(width), FILL_NORMAL);
    test.in[5] = integers(SHAPE(r->samples), FILL_LENGTH, r->steps);
    check_recurrent(test);
}

static void recurrent_row(int row)
{
    const struct recurrent_row *r = &recurrent_rows[row];
    for (int i = 0; i < 4 * CELL_COUNT; i++) {
        const struct recurrent_attr attr = {.cell = (enum recurrent_cell)(i / 4),
                                            .by = i % 2 == 0 ? 1 : -1,
                                            .checkpoint_steps =
                                                i % 4 < 2 ? 0 : r->checkpoint_steps};
        /* Steps of ReLU that are made again in bf16 end at another side of zero now and then. */
        if (!low_on || attr.cell != CELL_RELU || attr.checkpoint_steps == 0)
            check_cell(r, attr);
    }
}
ALL_ROWS(recurrent, recurrent_rows)

/* What indexes memory is refused, with the sample and the value, also where a loader let it pass.
 */
static void check_refused(const char *op, struct tensor a, struct tensor b, struct shape out,
                          const char *says)
{
    struct kernel_test test = {.op = op, .step = {.first_sample = 60}};
    test.in[0] = a;
    test.in[1] = b;
    test.out[0] = kernel_test_activation(out);
    kernel_test_refuses(&test, ERR_DATA_INVALID, says);
    free(a.reference != NULL ? test.in[1].reference : test.in[0].reference);
}

static struct tensor given(struct shape shape, double *values)
{
    return (struct tensor){
        .shape = shape, .fill = FILL_INDEX, .dtype = DTYPE_I64, .reference = values};
}

START_TEST(integers_out_of_range)
{
    struct tensor w = kernel_test_variable(SHAPE(4, 2), FILL_NORMAL);
    struct tensor x = kernel_test_activation(SHAPE(2, 3, 2));
    struct shape embedded = SHAPE(2, 2, 2), selected = SHAPE(2, 2);
    check_refused("embedding", given(SHAPE(2, 2), (double[]){0, 3, 1, 4}), w, embedded,
                  "sample 61 of the epoch has the integer 4, and there are 4 embeddings");
    check_refused("embedding", given(SHAPE(2, 2), (double[]){0, -1, 1, 1}), w, embedded,
                  "sample 60 of the epoch has the integer -1, and there are 4 embeddings");
    check_refused("select_last", x, given(SHAPE(2), (double[]){3, 0}), selected,
                  "sample 61 of the epoch has the length 0, and there are 3 steps");
    check_refused("select_last", x, given(SHAPE(2), (double[]){4, 1}), selected,
                  "sample 60 of the epoch has the length 4, and there are 3 steps");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {embedding,        positional, select_last,          attention,
                                  attention_chunks, recurrent,  integers_out_of_range};
    return kernel_test_main("sequences", tests, ROWS(tests));
}
