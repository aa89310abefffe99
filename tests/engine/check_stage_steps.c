/* The steps of a model in stages and micro-batches against the whole model's, on one device. */
#include <math.h>
#include <string.h>

#include "tests/engine/models.h"
#include "tests/engine/staged.h"
#include "tests/lib/apart.h"
#include "tests/lib/checks.h"

#define LABELS                                                                                     \
    "'data': {'train': {'format': 'random', 'samples': 64, 'seed': 1, 'classes': 3}},"             \
    "'loss': {'type': 'CrossEntropyLoss'},"
#define NUMBERS                                                                                    \
    "'data': {'train': {'format': 'random', 'samples': 64, 'seed': 1}}, 'loss': {'type': "         \
    "'MSELoss'},"
#define TRAIN "'train': {'epochs': 1, 'batch_size': 4},"

static const struct {
    const char *model, *rest;
} models[] = {
    {"'input': {'shape': [6]}, 'layers': ["
     " {'type': 'Linear', 'out_features': 8}, {'type': 'ReLU'}, {'type': 'Dropout', 'p': 0.3},"
     " {'type': 'Linear', 'out_features': 7}, {'type': 'GELU'}, {'type': 'Dropout'},"
     " {'type': 'Linear', 'out_features': 4}]",
     LABELS TRAIN "'optimizer': {'type': 'Adam', 'lr': 0.01}"},
    /* Each layer's output is read right behind it and far from it. */
    {"'input': {'shape': [2, 9, 9]}, 'layers': ["
     " {'type': 'Conv2d', 'name': 'a', 'out_channels': 8, 'kernel_size': 3, 'padding': 1,"
     " 'bias': false},"
     " {'type': 'BatchNorm2d', 'name': 'an'}, {'type': 'ReLU', 'name': 'ar'},"
     " {'type': 'MaxPool2d', 'name': 'p', 'kernel_size': 2},"
     " {'type': 'Conv2d', 'name': 'b', 'out_channels': 8, 'kernel_size': 3, 'padding': 1,"
     " 'bias': false},"
     " {'type': 'BatchNorm2d', 'name': 'bn'}, {'type': 'Add', 'name': 's', 'inputs': ['bn', 'p']},"
     " {'type': 'Conv2d', 'name': 'c', 'out_channels': 8, 'kernel_size': 1},"
     " {'type': 'Add', 'name': 't', 'inputs': ['c', 's', 'p']},"
     " {'type': 'Mul', 'name': 'u', 'inputs': ['t', 'p']},"
     " {'type': 'Flatten'}, {'type': 'Dropout'}, {'type': 'Linear', 'out_features': 5}]",
     LABELS TRAIN "'optimizer': {'type': 'SGD', 'lr': 0.01,"
                  " 'momentum': 0.9}"},
    {"'preset': 'resnet18', 'input': {'shape': [3, 16, 16]},"
     " 'args': {'num_classes': 5, 'width': 8}",
     LABELS TRAIN "'optimizer': {'type': 'SGD', 'lr': 0.01,"
                  " 'momentum': 0.9}"},
    {"'preset': 'gpt', 'args': {'vocab_size': 11, 'context': 6, 'n_layer': 3, 'n_head': 2,"
     " 'n_embd': 8, 'dropout': 0.1}",
     LABELS TRAIN "'optimizer': {'type': 'AdamW', 'lr': 0.01}"},
    {"'preset': 'lstm_lm', 'args': {'vocab_size': 11, 'context': 6, 'embedding_dim': 5,"
     " 'hidden_size': 7, 'num_layers': 2, 'dropout': 0.2}",
     LABELS TRAIN "'optimizer': {'type': 'SGD', 'lr': 0.1}"},
    /* Two inputs, lengths that are read in the last stage, MSE. */
    {"'inputs': {'x': {'shape': [5, 4], 'lengths': true},"
     " 'y': {'shape': [3]}}, 'layers': ["
     " {'type': 'Linear', 'name': 'front', 'out_features': 6, 'inputs': ['x']},"
     " {'type': 'GRU', 'name': 'gru', 'hidden_size': 5}, {'type': 'ReLU'},"
     " {'type': 'SelectLast', 'name': 'last'},"
     " {'type': 'Linear', 'name': 'side', 'out_features': 5, 'inputs': ['y']},"
     " {'type': 'Cat', 'dim': 1, 'inputs': ['last', 'side']}, {'type': 'Linear',"
     " 'out_features': 2}]",
     NUMBERS TRAIN "'optimizer': {'type': 'SGD', 'lr': 0.1}"},
    /* A frozen prefix, and clipped gradients. */
    {"'input': {'shape': [6]}, 'layers': ["
     " {'type': 'Linear', 'name': 'f', 'out_features': 8}, {'type': 'ReLU', 'name': 'r'},"
     " {'type': 'Linear', 'name': 'g', 'out_features': 8}, {'type': 'BatchNorm1d', 'name': 'h'},"
     " {'type': 'Linear', 'out_features': 7}, {'type': 'Linear', 'out_features': 3}],"
     " 'freeze': ['f', 'g']",
     LABELS "'optimizer': {'type': 'SGD', 'lr': 0.1},"
            " 'train': {'epochs': 1, 'batch_size': 4, 'clip_grad_norm': 0.05}"},
    /* Segments that are recomputed. */
    {"'preset': 'gpt', 'args': {'vocab_size': 11, 'context': 6, 'n_layer': 3, 'n_head': 2,"
     " 'n_embd': 8, 'dropout': 0.1}",
     LABELS "'optimizer': {'type': 'SGD', 'lr': 0.1},"
            " 'train': {'epochs': 1, 'batch_size': 4, 'checkpoint_activations': true}"},
    /* What crosses is BF16 behind a product, and where the whole model keeps it so. */
    {"'preset': 'gpt', 'args': {'vocab_size': 11, 'context': 6, 'n_layer': 3, 'n_head': 2,"
     " 'n_embd': 8, 'dropout': 0.1}",
     LABELS "'optimizer': {'type': 'SGD', 'lr': 0.1},"
            " 'train': {'epochs': 1, 'batch_size': 4, 'precision': 'bf16'}"},
    {"'input': {'shape': [2, 8, 8]}, 'layers': ["
     " {'type': 'Conv2d', 'out_channels': 16, 'kernel_size': 3, 'padding': 1},"
     " {'type': 'GELU', 'name': 'g'}, {'type': 'Conv2d', 'name': 'c', 'out_channels': 16,"
     " 'kernel_size': 1}, {'type': 'Add', 'inputs': ['c', 'g']}, {'type': 'SiLU'},"
     " {'type': 'Flatten'}, {'type': 'Linear', 'out_features': 5}]",
     LABELS "'optimizer': {'type': 'SGD', 'lr': 0.01},"
            " 'train': {'epochs': 1, 'batch_size': 4, 'precision': 'bf16'}"},
};
enum { N_MODELS = sizeof models / sizeof models[0], STEPS = 2 };

/* max|a-b| / max|b| over all parameters and buffers is at most that. */
static void check_same(const struct staged *a, const struct staged *b, const struct model *model,
                       double tolerance)
{
    for (size_t v = 0; v < model->n_variables; v++) {
        const struct variable *variable = &model->variables[v];
        size_t n = (size_t)shape_count(&variable->shape);
        if (variable->dtype != DTYPE_F32 || variable->kind == VARIABLE_GRADIENT)
            continue;
        const float *x = staged_variable(a, (int)v), *y = staged_variable(b, (int)v);
        struct apart apart = apart_floats(x, y, n);
        ck_assert_msg(apart.worst <= tolerance * apart.largest, "%s differs by %g of %g",
                      variable->name, apart.worst, apart.largest);
    }
}

/* Both make the same steps. */
static void compare(struct staged *staged, struct staged *whole, const struct model *model,
                    enum staged_order order, double tolerance)
{
    for (int step = 0; step < STEPS; step++) {
        double wanted = staged_step(whole, STAGED_ONE_BY_ONE);
        double loss = staged_step(staged, order);
        ck_assert_msg(fabs(loss - wanted) <= tolerance * fabs(wanted),
                      "order %d, step %d: loss %.9g, whole %.9g", (int)order, step, loss, wanted);
    }
    check_same(staged, whole, model, tolerance);
}

START_TEST(one_batch_gives_the_whole_models_bits)
{
    static const enum plan_cut cuts[] = {CUT_BACKWARD, CUT_WEIGHTS};
    struct model *model = models_of(models[_i].model, models[_i].rest);
    /* In parts: the norm of clipped gradients, a gradient of more than two readers. */
    bool clips = model->job->train.clip_grad_norm > 0;
    for (int n_stages = 2; n_stages <= 3; n_stages++)
        for (size_t cut = 0; cut < 2; cut++) {
            struct split split = staged_split(model, n_stages);
            struct staged_config config = {.model = model, .n_microbatches = 1, .sizes = {6}};
            struct staged *whole = staged_open(&config);
            config.split = &split;
            config.cut = cuts[cut];
            struct staged *staged = staged_open(&config);
            compare(staged, whole, model, STAGED_ONE_BY_ONE, clips || n_stages > 2 ? 1e-6 : 0);
            staged_close(whole);
            staged_close(staged);
        }
    models_free(model);
}
END_TEST

/* Each order goes on where the one before has ended. */
START_TEST(micro_batches_in_any_order_make_the_whole_models_step)
{
    struct model *model = models_of(models[_i].model, models[_i].rest);
    struct split two = staged_split(model, 2), three = staged_split(model, 3);
    struct staged_config config = {.model = model, .n_microbatches = 5, .sizes = {3, 3, 3, 3, 2}};
    struct staged *whole = staged_open(&config);
    config.split = &two;
    config.cut = CUT_BACKWARD;
    struct staged *joint = staged_open(&config);
    config.split = &three;
    config.cut = CUT_WEIGHTS;
    struct staged *parted = staged_open(&config);
    for (int order = 0; order < STAGED_ORDERS; order++) {
        compare(joint, whole, model, (enum staged_order)order, 1e-6);
        for (int step = 0; step < STEPS; step++)
            staged_step(parted, (enum staged_order)order);
        check_same(parted, whole, model, 1e-6);
    }
    staged_close(whole);
    staged_close(joint);
    staged_close(parted);
    models_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stage_steps");
    TCase *tcase = checks_case(suite, "steps", 120);
    tcase_add_loop_test(tcase, one_batch_gives_the_whole_models_bits, 0, N_MODELS);
    tcase_add_loop_test(tcase, micro_batches_in_any_order_make_the_whole_models_step, 0, N_MODELS);
    return checks_run(suite);
}
