/* stages_case.c: see stages_case.h. */
#include "tests/engine/stages_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/registry.h"
#include "engine/train/init.h"
#include "tests/engine/models.h"
#include "tests/lib/apart.h"
#include "tests/lib/checks.h"

enum { CLASSES = 5 };

const struct stages_network stages_networks[] = {
    {.name = "mlp",
     .input = "[6]",
     .layers = "{'type': 'Linear', 'name': 'a', 'out_features': 16}, {'type': 'ReLU', 'name': 'r'},"
               "{'type': 'Linear', 'name': 'b', 'out_features': 12},"
               "{'type': 'Dropout', 'name': 'd', 'p': 0.4},"
               "{'type': 'Linear', 'name': 'c', 'out_features': 9}, {'type': 'Tanh', 'name': 't'},"
               "{'type': 'Linear', 'name': 'e', 'out_features': 5}",
     .split = {"b", "c", "e"}},
    {.name = "cnn",
     .input = "[1, 8, 8]",
     .layers =
         "{'type': 'Conv2d', 'name': 'a', 'out_channels': 4, 'kernel_size': 3, 'padding': 1},"
         "{'type': 'ReLU', 'name': 'r'}, {'type': 'MaxPool2d', 'name': 'p', 'kernel_size': 2},"
         "{'type': 'Conv2d', 'name': 'b', 'out_channels': 6, 'kernel_size': 3, 'padding': 1},"
         "{'type': 'ReLU', 'name': 's'}, {'type': 'Flatten', 'name': 'f'},"
         "{'type': 'Linear', 'name': 'c', 'out_features': 10}, {'type': 'ReLU', 'name': 't'},"
         "{'type': 'Linear', 'name': 'e', 'out_features': 5}",
     .split = {"r", "b", "c"}},
    {.name = "residual",
     .input = "[6]",
     .layers = "{'type': 'Linear', 'name': 'a', 'out_features': 8}, {'type': 'ReLU', 'name': 'r'},"
               "{'type': 'Linear', 'name': 'b', 'out_features': 8},"
               "{'type': 'Linear', 'name': 'c', 'out_features': 8},"
               "{'type': 'Add', 'name': 'near', 'inputs': ['c', 'b']},"
               "{'type': 'ReLU', 'name': 's'},"
               "{'type': 'Add', 'name': 'far', 'inputs': ['s', 'r']},"
               "{'type': 'Cat', 'name': 'both', 'inputs': ['far', 'r'], 'dim': 1},"
               "{'type': 'Linear', 'name': 'e', 'out_features': 5}",
     .split = {"b", "c", "far"}},
    {.name = "gpt",
     .input = "[7], 'dtype': 'int64'",
     .layers =
         "{'type': 'Embedding', 'name': 'tokens', 'num_embeddings': 5, 'embedding_dim': 8},"
         "{'type': 'PositionalEmbedding', 'name': 'places', 'num_embeddings': 7},"
         "{'type': 'LayerNorm', 'name': 'ln', 'normalized_shape': [8]},"
         "{'type': 'SelfAttention', 'name': 'attend', 'num_heads': 2, 'causal': true},"
         "{'type': 'Add', 'name': 'sum', 'inputs': ['attend', 'places']},"
         "{'type': 'LayerNorm', 'name': 'ln2', 'normalized_shape': [8]},"
         "{'type': 'Linear', 'name': 'up', 'out_features': 16}, {'type': 'GELU', 'name': 'g'},"
         "{'type': 'Linear', 'name': 'down', 'out_features': 8},"
         "{'type': 'Add', 'name': 'sum2', 'inputs': ['down', 'sum']},"
         "{'type': 'Linear', 'name': 'head', 'out_features': 5}",
     .split = {"attend", "ln2", "down"}},
    {.name = "lstm",
     .input = "[6, 4]",
     .layers = "{'type': 'LSTM', 'name': 'a', 'hidden_size': 6, 'bidirectional': true},"
               "{'type': 'GRU', 'name': 'b', 'hidden_size': 5},"
               "{'type': 'SelectLast', 'name': 'l'},"
               "{'type': 'Linear', 'name': 'c', 'out_features': 7}, {'type': 'ReLU', 'name': 'r'},"
               "{'type': 'Linear', 'name': 'e', 'out_features': 5}",
     .split = {"b", "l", "e"}},
    {.name = "frozen",
     .input = "[6]",
     .layers = "{'type': 'Linear', 'name': 'a', 'out_features': 8}, {'type': 'ReLU', 'name': 'r'},"
               "{'type': 'Linear', 'name': 'b', 'out_features': 8},"
               "{'type': 'Add', 'name': 'x', 'inputs': ['b', 'r']},"
               "{'type': 'Linear', 'name': 'c', 'out_features': 8},"
               "{'type': 'Linear', 'name': 'e', 'out_features': 5}], 'freeze': ['a', 'c'",
     .split = {"b", "c", "e"}},
    {.name = "recomputed",
     .input = "[6]",
     .layers = "{'type': 'Linear', 'name': 'a', 'out_features': 8}, {'type': 'Tanh', 'name': 'r'},"
               "{'type': 'Dropout', 'name': 'd', 'p': 0.4},"
               "{'type': 'Linear', 'name': 'b', 'out_features': 8}, {'type': 'GELU', 'name': 's'},"
               "{'type': 'Linear', 'name': 'c', 'out_features': 8}, {'type': 'Tanh', 'name': 't'},"
               "{'type': 'Add', 'name': 'x', 'inputs': ['t', 'r']},"
               "{'type': 'Linear', 'name': 'e', 'out_features': 5}",
     .split = {"d", "c", "x"},
     .more = "'loss': {'type': 'CrossEntropyLoss'}, 'optimizer': {'type': 'SGD', 'lr': 0.1},"
             "'train': {'epochs': 1, 'batch_size': 4, 'checkpoint_activations': ['d', 's', 't']}"},
    /* A gradient of nearly nothing does not count as one: eps is larger than Adam's own. */
    {.name = "adam",
     .input = "[6]",
     .layers = "{'type': 'Linear', 'name': 'a', 'out_features': 8}, {'type': 'Tanh', 'name': 'r'},"
               "{'type': 'Linear', 'name': 'b', 'out_features': 8}, {'type': 'ReLU', 'name': 's'},"
               "{'type': 'LayerNorm', 'name': 'c', 'normalized_shape': [8]},"
               "{'type': 'Linear', 'name': 'e', 'out_features': 5}",
     .split = {"b", "c", "e"},
     .more = "'loss': {'type': 'CrossEntropyLoss', 'label_smoothing': 0.1, 'ignore_index': 2},"
             "'optimizer': {'type': 'Adam', 'lr': 0.01, 'eps': 0.001}"},
};
const int stages_n_networks = sizeof stages_networks / sizeof stages_networks[0];

const struct device_config stages_devices[STAGES_DEVICES] = {
    {.name = "cpu:0", .n_threads = 1}, {.name = "cpu:1", .n_threads = 1},
    {.name = "cpu:2", .n_threads = 1}, {.name = "cpu:3", .n_threads = 1},
    {.name = "cpu:4", .n_threads = 1}, {.name = "cpu:5", .n_threads = 1},
};

struct strategy_config stages_case_config(const struct model *model,
                                          const struct stages_config *config)
{
    static const int64_t usual[] = {STAGES_BATCH};
    static struct strategy_batch batches[32];
    const int64_t *sizes = config->sizes != NULL ? config->sizes : usual;
    size_t n_sizes = config->sizes != NULL ? config->n_sizes : 1, n = 0;
    for (size_t i = 0; i < n_sizes; i++)
        for (int part = STEP_WHOLE; part <= (config->windows ? STEP_LAST : STEP_WHOLE); part++)
            batches[n++] = (struct strategy_batch){sizes[i], (enum step_part)part};
    return (struct strategy_config){
        .backend = config->backend != NULL ? config->backend : &backend_cpu,
        .model = model,
        .devices = stages_devices,
        .n_devices = config->n_devices,
        .train_batches = batches,
        .n_train_batches = n,
        .eval_batches = sizes,
        .n_eval_batches = n_sizes,
        .keep_outputs = true,
    };
}

struct model *stages_case_model(const struct stages_network *network,
                                const struct stages_config *config)
{
    char more[2048];
    const char *usual = "'loss': {'type': 'CrossEntropyLoss'},"
                        "'optimizer': {'type': 'SGD', 'lr': 0.1, 'momentum': 0.9}";
    struct model *model = NULL;
    struct err err = ERR_INIT;
    snprintf(more, sizeof more, "%s, 'parallel': %s", network->more != NULL ? network->more : usual,
             config->parallel != NULL ? config->parallel : "{}");
    struct job *job = models_job(network->input, network->layers, more);
    job->train.clip_grad_norm = config->clip;
    ck_assert_msg(model_build(job, &op_registry, &model, &err) == 0, "%s: %s", network->name,
                  err.message);
    return model;
}

void stages_case_open(struct stages_case *c, const struct stages_network *network,
                      const struct stages_config *config)
{
    struct err err = ERR_INIT;
    size_t n = sizeof c->floats / sizeof c->floats[0];
    *c = (struct stages_case){.model = stages_case_model(network, config)};
    models_fill(c->floats, n, 7);
    for (size_t i = 0; i < n; i++) {
        c->integers[i] = (int64_t)(i * i + i / 3) % CLASSES;
        c->targets[i] = (int64_t)(i * i + i / 7) % CLASSES;
    }
    struct strategy_config strategy = stages_case_config(c->model, config);
    ck_assert_msg(strategy_open(&strategy, &c->strategy, &err) == 0, "%s, %s: %s", network->name,
                  config->parallel, err.message);
    ck_assert_msg(init_all(c->strategy, c->model, &err) == 0, "%s", err.message);
}

void stages_case_close(struct stages_case *c)
{
    strategy_close(c->strategy);
    models_free(c->model);
}

static struct batch batch_of(const struct stages_case *c, int64_t first, int64_t n)
{
    const struct model_input *input = &c->model->inputs[0];
    int64_t at = first * shape_count(&input->shape);
    struct batch batch = {.n = n, .targets = c->targets + first * c->model->loss_terms};
    batch.inputs[0] = input->dtype == DTYPE_I64 ? (const void *)(c->integers + at)
                                                : (const void *)(c->floats + at);
    return batch;
}

static struct step step_of(const struct stages_case *c, int64_t first, int64_t n, int64_t number)
{
    return (struct step){
        .seed = 1,
        .number = number,
        .first_sample = 26 + first,
        .loss_divisor = graph_loss_divisor(c->model, c->targets, n),
        .gradient_scale = 1,
        .lr = c->model->job->optimizer.lr,
    };
}

int stages_case_try(struct stages_case *c, int64_t first, int64_t n, enum step_part part,
                    int64_t number, struct strategy_result *ret_result, struct err *err)
{
    int64_t whole = part == STEP_WHOLE ? n : STAGES_BATCH;
    struct batch batch = batch_of(c, first, n);
    struct step step = step_of(c, first, whole, number);
    return strategy_train(c->strategy, &batch, part, &step, ret_result, err);
}

struct strategy_result stages_case_train(struct stages_case *c, int64_t n, int64_t number)
{
    struct strategy_result result;
    struct err err = ERR_INIT;
    int rc = stages_case_try(c, 0, n, STEP_WHOLE, number, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    return result;
}

struct strategy_result stages_case_evaluate(struct stages_case *c, int64_t n, int64_t number)
{
    struct strategy_result result;
    struct err err = ERR_INIT;
    struct batch batch = batch_of(c, 0, n);
    struct step step = step_of(c, 0, n, number);
    int rc = strategy_evaluate(c->strategy, &batch, &step, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    return result;
}

static void *read_variable(const struct stages_case *c, size_t i, size_t *ret_bytes)
{
    const struct variable *v = &c->model->variables[i];
    struct err err = ERR_INIT;
    *ret_bytes = (size_t)shape_count(&v->shape) * dtype_size(v->dtype);
    void *elements = malloc(*ret_bytes + 1);
    ck_assert_int_eq(strategy_read(c->strategy, (int)i, elements, &err), 0);
    return elements;
}

static void same_floats(const char *name, const float *x, const float *y, size_t n,
                        double tolerance)
{
    struct apart apart = apart_floats(x, y, n);
    ck_assert_msg(apart.worst <= tolerance * apart.largest, "%s: differs by %g of %g", name,
                  apart.worst, apart.largest);
}

void stages_case_same(const struct stages_case *a, const struct stages_case *b, unsigned kinds,
                      double tolerance)
{
    ck_assert_uint_eq(a->model->n_variables, b->model->n_variables);
    for (size_t i = 0; i < a->model->n_variables; i++) {
        const struct variable *v = &a->model->variables[i];
        size_t bytes;
        if ((kinds >> v->kind & 1) == 0)
            continue;
        void *x = read_variable(a, i, &bytes), *y = read_variable(b, i, &bytes);
        if (v->dtype == DTYPE_F32 && tolerance > 0)
            same_floats(v->name, x, y, bytes / sizeof(float), tolerance);
        else
            ck_assert_msg(memcmp(x, y, bytes) == 0, "%s differs", v->name);
        free(x);
        free(y);
    }
}
