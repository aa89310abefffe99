/* check_ops.c: every op's forward and gradients, its reference and its kernel, against PyTorch: the
 * cases of generate_ops.py.
 *
 * A row is an op with what it takes and gives, by the names of ops.def, which the golden has too.
 * An output that it does not have is kept for the rows that follow: what a backend saves for the
 * gradient, of the shape of the tensor named behind '=', or of these dimensions. (Dropout draws its
 * own masks: check_ref.c has its gradient by differences.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "engine/ops/attr.h"
#include "tests/engine/kernel_test.h"
#include "tests/golden/golden.h"

static const double weights[] = {0.5, 2, 1.25, 1, 0.75};

#define ATTR(type, ...) (&(const struct type##_attr){__VA_ARGS__})

static const struct row {
    const char *name, *op, *values;
    const void *attr;
} rows[] = {
#define CONV(name, ...)                                                                            \
    {name, "conv2d", "x w b -> y", ATTR(conv2d, __VA_ARGS__)},                                     \
        {name, "conv2d_input_grad", "gy w -> gx", ATTR(conv2d, __VA_ARGS__)},                      \
    {                                                                                              \
        name, "conv2d_weight_grad", "x gy -> gw gb", ATTR(conv2d, __VA_ARGS__)                     \
    }
    CONV("conv2d", {1, 1}, {1, 1}, {1, 1}, 1),
    CONV("conv2d-one", {1, 1}, {0, 0}, {1, 1}, 1),
    CONV("conv2d-strided", {2, 1}, {1, 0}, {1, 2}, 1),
    CONV("conv2d-grouped", {2, 2}, {2, 2}, {2, 2}, 3),
    CONV("conv2d-depthwise", {1, 1}, {1, 1}, {1, 1}, 5),
    CONV("conv2d-same", {1, 1}, {0, 1}, {1, 1}, 1),

#define LINEAR(name)                                                                               \
    {name, "linear", "x w b -> y", NULL}, {name, "linear_input_grad", "gy w -> gx", NULL},         \
    {                                                                                              \
        name, "linear_weight_grad", "x gy -> gw gb", NULL                                          \
    }
    LINEAR("linear"),
    LINEAR("linear-one"),
    LINEAR("linear-steps"),

#define BATCH_NORM(name)                                                                           \
    {name, "batch_norm", "x w b running_mean running_var tracked -> y mean=b spread=b",            \
     ATTR(batch_norm, 1e-3, 0.3)},                                                                 \
        {name, "batch_norm_eval", "x w b running_mean running_var -> ye",                          \
         ATTR(batch_norm, 1e-3, 0.3)},                                                             \
    {                                                                                              \
        name, "batch_norm_grad", "x gy w mean spread -> gx gw gb", ATTR(batch_norm, 1e-3, 0.3)     \
    }
    BATCH_NORM("batch-norm"),
    BATCH_NORM("batch-norm-rows"),

#define LAYER_NORM(name, dims)                                                                     \
    {name, "layer_norm", "x w b -> y mean spread=mean", ATTR(layer_norm, 1e-3, dims)},             \
    {                                                                                              \
        name, "layer_norm_grad", "x gy w mean spread -> gx gw gb", ATTR(layer_norm, 1e-3, dims)    \
    }
    LAYER_NORM("layer-norm", 1),
    LAYER_NORM("layer-norm-planes", 3),

#define UNARY(name, op, saved, attr)                                                               \
    {name, op, "x -> y", attr},                                                                    \
    {                                                                                              \
        name, op "_grad", saved " gy -> gx", attr                                                  \
    }
    UNARY("relu", "relu", "y", NULL),
    UNARY("gelu", "gelu", "x", ATTR(gelu, false)),
    UNARY("gelu-tanh", "gelu", "x", ATTR(gelu, true)),
    UNARY("silu", "silu", "x", NULL),
    UNARY("sigmoid", "sigmoid", "y", NULL),
    UNARY("tanh", "tanh", "y", NULL),
    UNARY("softmax", "softmax", "y", ATTR(softmax, 1)),
    UNARY("softmax-last", "softmax", "y", ATTR(softmax, 3)),
    UNARY("log-softmax", "log_softmax", "y", ATTR(softmax, 2)),
    {"add", "add", "a b c -> y", NULL}, /* whose gradients are gy */
    {"mul", "mul", "a b c -> y", NULL},
    {"mul", "mul", "gy b c -> ga", NULL},
    {"mul", "mul", "gy a c -> gb", NULL},
    {"cat", "cat", "a b -> y", ATTR(cat, {{1, 0}, {1, 3}})},
    {"cat", "slice", "gy -> ga", ATTR(slice, 1, 0)},
    {"cat", "slice", "gy -> gb", ATTR(slice, 1, 3)},

#define MAX_POOL(name, ...)                                                                        \
    {name, "max_pool2d", "x -> y workspace=y", ATTR(max_pool2d, __VA_ARGS__)},                     \
    {                                                                                              \
        name, "max_pool2d_grad", "gy workspace -> gx", ATTR(max_pool2d, __VA_ARGS__)               \
    }
#define AVG_POOL(name, op, attr)                                                                   \
    {name, op, "x -> y", attr},                                                                    \
    {                                                                                              \
        name, op "_grad", "gy -> gx", attr                                                         \
    }
    MAX_POOL("max-pool", {3, 2}, {2, 1}, {1, 1}, {1, 1}, {1, 1}),
    MAX_POOL("max-pool-dilated", {3, 3}, {2, 2}, {1, 1}, {2, 2}, {1, 1}),
    MAX_POOL("max-pool-ceil", {3, 3}, {2, 2}, {0, 0}, {1, 1}, {1, 1}),
    AVG_POOL("avg-pool", "avg_pool2d", ATTR(avg_pool2d, {3, 2}, {2, 1}, {1, 1}, true, 0)),
    AVG_POOL("avg-pool-ceil", "avg_pool2d", ATTR(avg_pool2d, {3, 3}, {2, 2}, {0, 0}, false, 0)),
    AVG_POOL("avg-pool-divided", "avg_pool2d", ATTR(avg_pool2d, {2, 2}, {2, 2}, {0, 0}, true, 3)),
    AVG_POOL("adaptive-avg-pool", "adaptive_avg_pool2d", NULL),
    AVG_POOL("adaptive-avg-pool-wider", "adaptive_avg_pool2d", NULL),

#define ATTENTION(name, ...)                                                                       \
    {name, "attention", "x -> y lse", ATTR(attention, __VA_ARGS__)},                               \
    {                                                                                              \
        name, "attention_grad", "x gy y lse -> gx", ATTR(attention, __VA_ARGS__)                   \
    }
    ATTENTION("attention", 2, false, 0, 0),
    ATTENTION("attention-causal", 1, true, 0, 0),
    {"embedding", "embedding", "indices w -> y", ATTR(embedding, -1)},
    {"embedding", "embedding_weight_grad", "indices gy -> gw", ATTR(embedding, -1)},
    {"embedding-padded", "embedding", "indices w -> y", ATTR(embedding, 2)},
    {"embedding-padded", "embedding_weight_grad", "indices gy -> gw", ATTR(embedding, 2)},
    {"positions", "positional_embedding", "x w -> y", NULL},
    {"positions", "positional_embedding_weight_grad", "gy -> gw", NULL},
    {"select", "select_last", "x -> y", NULL},
    {"select", "select_last_grad", "gy -> gx", NULL},
    {"select-lengths", "select_last", "x lengths -> y", NULL},
    {"select-lengths", "select_last_grad", "gy lengths -> gx", NULL},

/* Three samples, four steps, a size of 3: what is saved by steps, or every third of them. */
#define CELL(name, cell, by, every, y, saved, taken)                                               \
    {name, "recurrent", "x w_ih w_hh b_ih b_hh lengths? -> y " saved,                              \
     ATTR(recurrent, cell, by, every)},                                                            \
    {                                                                                              \
        name, "recurrent_grad",                                                                    \
            "gy x w_ih w_hh b_ih b_hh lengths? " y taken " -> gx gw_ih gw_hh gb_ih gb_hh",         \
            ATTR(recurrent, cell, by, every)                                                       \
    }
#define CELL_WAYS(name, cell, every, y, saved, taken)                                              \
    CELL(name, cell, 1, every, y, saved, taken),                                                   \
        CELL(name "-lengths", cell, 1, every, y, saved, taken),                                    \
        CELL(name "-back", cell, -1, every, y, saved, taken),                                      \
        CELL(name "-back-lengths", cell, -1, every, y, saved, taken)
    CELL_WAYS("lstm", CELL_LSTM, 0, "y", "state=4,3,3 gates=4,3,12", " state gates"),
    CELL_WAYS("lstm", CELL_LSTM, 3, "-", "state=2,2,3,3", " state"),
    CELL_WAYS("gru", CELL_GRU, 0, "y", "state=4,3,3 gates=4,3,9", " state gates"),
    CELL_WAYS("gru", CELL_GRU, 3, "-", "state=2,1,3,3", " state"),
    CELL_WAYS("rnn", CELL_TANH, 0, "y", "", ""),
    CELL_WAYS("rnn", CELL_TANH, 3, "-", "state=2,1,3,3", " state"),
    CELL_WAYS("rnn-relu", CELL_RELU, 0, "y", "", ""),

#define LOSS(name, op, attr)                                                                       \
    {                                                                                              \
        name, op, "x target -> loss gx", attr                                                      \
    }
    LOSS("cross-entropy", "cross_entropy", ATTR(class_loss, 0, -100, NULL)),
    LOSS("cross-entropy-steps", "cross_entropy", ATTR(class_loss, 0, 2, NULL)),
    LOSS("cross-entropy-weighted", "cross_entropy", ATTR(class_loss, 0, 1, weights)),
    LOSS("cross-entropy-smooth", "cross_entropy", ATTR(class_loss, 0.2, -100, NULL)),
    LOSS("cross-entropy-smooth-weighted", "cross_entropy", ATTR(class_loss, 0.2, 3, weights)),
    LOSS("nll", "nll", ATTR(class_loss, 0, -100, NULL)),
    LOSS("nll-steps", "nll", ATTR(class_loss, 0, 2, NULL)),
    LOSS("nll-weighted", "nll", ATTR(class_loss, 0, 1, weights)),
    LOSS("mse", "mse", NULL),
    LOSS("l1", "l1", NULL),
    LOSS("bce", "bce_with_logits", ATTR(bce, NULL, 0)),
    LOSS("bce-weighted", "bce_with_logits", ATTR(bce, weights, 5)),
};

static struct safetensors *golden;

enum { MOST_ROWS = 3, MOST_KEPT = 8, LOSS_DIVISOR = 7 };

/* A case: its rows, and what they keep. */
struct bench {
    const char *name;
    struct kernel_test tests[MOST_ROWS];
    char values[MOST_ROWS][128]; /* the names are in it */
    int n;
    struct {
        const char *name;
        const struct tensor *tensor;
    } kept[MOST_KEPT];
    int n_kept;
};

static const struct safetensor *find(const struct bench *bench, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", bench->name, name);
    return safetensors_find(golden, path);
}

static double number(const struct safetensor *tensor, size_t i)
{
    const char *at = (const char *)tensor->data + i * dtype_size(tensor->dtype);
    float real;
    int64_t whole;
    if (tensor->dtype == DTYPE_F32) {
        memcpy(&real, at, sizeof real);
        return (double)real;
    }
    memcpy(&whole, at, sizeof whole);
    return (double)whole;
}

/* NULL of NULL. */
static double *doubles(const struct safetensor *tensor)
{
    if (tensor == NULL)
        return NULL;
    size_t n = (size_t)shape_count(&tensor->shape);
    double *values = malloc(n * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < n; i++)
        values[i] = number(tensor, i);
    return values;
}

static bool is_variable(const char *name)
{
    static const char *const names[] = {
        "w", "b", "w_ih", "w_hh", "b_ih", "b_hh", "running_mean", "running_var", "tracked"};
    for (int i = 0; i < ROWS(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static struct tensor copy_of(const struct tensor *tensor)
{
    size_t bytes = (size_t)shape_count(&tensor->shape) * sizeof *tensor->reference;
    if (tensor->opaque)
        return *tensor;
    struct tensor copy = {.shape = tensor->shape, .fill = FILL_NORMAL};
    copy.reference = malloc(bytes);
    ck_assert_ptr_nonnull(copy.reference);
    memcpy(copy.reference, tensor->reference, bytes);
    return copy;
}

/* From an earlier row, or from the golden. "NAME?" is absent where neither has it. */
static struct tensor take(const struct bench *bench, const char *op, char *name)
{
    char after[64], *optional = strchr(name, '?');
    if (strcmp(name, "-") == 0)
        return (struct tensor){.fill = FILL_ABSENT};
    if (optional != NULL)
        *optional = '\0';
    for (int i = 0; i < bench->n_kept; i++)
        if (strcmp(bench->kept[i].name, name) == 0)
            return copy_of(bench->kept[i].tensor);
    const struct safetensor *given = find(bench, name);
    ck_assert_msg(given != NULL || optional != NULL, "%s: no %s", bench->name, name);
    if (given == NULL)
        return (struct tensor){.fill = FILL_ABSENT};
    snprintf(after, sizeof after, "%s.after", name);
    bool mutated = strcmp(op, "batch_norm") == 0 && find(bench, after) != NULL;
    return (struct tensor){.shape = given->shape,
                           .fill = FILL_NORMAL,
                           .dtype = given->dtype,
                           .variable = is_variable(name),
                           .mutated = mutated,
                           .reference = doubles(given),
                           .golden = mutated ? doubles(find(bench, after)) : NULL};
}

/* "2,3": [2, 3]. */
static struct shape shape_of(const char *dims)
{
    struct shape shape = {0};
    for (char *end; *dims != '\0'; dims = *end == ',' ? end + 1 : end)
        shape.dim[shape.rank++] = strtol(dims, &end, 10);
    return shape;
}

/* To be compared with the golden's; "NAME=LIKE", where it has none, is kept. */
static void give(struct bench *bench, char *name, struct tensor *ret)
{
    char *like = strchr(name, '=');
    if (like != NULL)
        *like++ = '\0';
    bool dims = like != NULL && like[0] >= '0' && like[0] <= '9';
    const struct safetensor *wanted = dims ? NULL : find(bench, like != NULL ? like : name);
    ck_assert_msg(dims || wanted != NULL, "%s: no %s", bench->name, name);
    *ret = (struct tensor){.shape = dims ? shape_of(like) : wanted->shape, .fill = FILL_NORMAL};
    ret->opaque = strcmp(name, "workspace") == 0;
    ret->dtype = ret->opaque ? DTYPE_U8 : strcmp(name, "loss") == 0 ? DTYPE_F64 : DTYPE_F32;
    if (like == NULL) {
        ret->golden = doubles(wanted);
        return;
    }
    ck_assert_int_lt(bench->n_kept, MOST_KEPT);
    bench->kept[bench->n_kept].name = name;
    bench->kept[bench->n_kept++].tensor = ret;
}

static void run_row(struct bench *bench, const struct row *row)
{
    ck_assert_int_lt(bench->n, MOST_ROWS);
    struct kernel_test *test = &bench->tests[bench->n];
    char *rest = bench->values[bench->n++];
    int n_in = 0, n_out = 0;
    bool gives = false;
    *test = (struct kernel_test){
        .op = row->op, .attr = row->attr, .step = {.loss_divisor = LOSS_DIVISOR}};
    snprintf(rest, sizeof bench->values[0], "%s", row->values);
    for (char *name; (name = strsep(&rest, " ")) != NULL;) {
        if (name[0] == '\0')
            continue;
        if (strcmp(name, "->") == 0)
            gives = true;
        else if (gives)
            give(bench, name, &test->out[n_out++]);
        else
            test->in[n_in++] = take(bench, row->op, name);
    }
    kernel_test_run(test);
}

static void check_rows(int row)
{
    struct bench bench = {.name = rows[row].name};
    if (row > 0 && strcmp(rows[row - 1].name, bench.name) == 0)
        return; /* was run with the case's first */
    for (; row < ROWS(rows) && strcmp(rows[row].name, bench.name) == 0; row++)
        run_row(&bench, &rows[row]);
    while (bench.n > 0)
        kernel_test_done(&bench.tests[--bench.n]);
}

START_TEST(ops)
{
    for (int row = 0; row < ROWS(rows); row++)
        check_rows(row);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {ops};
    struct err err = ERR_INIT;
    if (!golden_enter() || safetensors_open("ops.safetensors", &golden, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        return EXIT_FAILURE;
    }
    int status = kernel_test_main("ops", tests, ROWS(tests));
    safetensors_close(golden);
    return status;
}
