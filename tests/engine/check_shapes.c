/* check_shapes.c: the layers' shapes and parameters by value, and what they refuse. */
#include <stdio.h>
#include <string.h>

#include "engine/ops/registry.h"
#include "tests/engine/models.h"
#include "tests/lib/checks.h"

static const char *const mse = "'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 1}";

/* A layer behind a first one with a weight, and its output without the batch. */
static const struct {
    const char *input, *layers, *output;
} good[] = {
    {"[6]", "{'type': 'Softmax', 'dim': -1}", "[6]"},
    {"[2, 6]", "{'type': 'LogSoftmax', 'dim': 1}", "[2, 6]"},
    {"[2, 6]", "{'type': 'LayerNorm', 'normalized_shape': [2, 6]}", "[2, 6]"},
    {"[2, 6]", "{'type': 'Reshape', 'shape': [3, -1, 2]}", "[3, 2, 2]"},
    {"[2, 6]", "{'type': 'Reshape', 'shape': [12]}", "[12]"},
    {"[2, 6]", "{'type': 'Cat', 'dim': 1, 'inputs': ['0', '0', 'input']}", "[6, 6]"},
    {"[2, 6]", "{'type': 'Cat', 'dim': -1, 'inputs': ['0', 'input']}", "[2, 12]"},
    {"[2, 6]", "{'type': 'Mul', 'inputs': ['0', '0', 'input']}", "[2, 6]"},
    {"[3, 7, 6]", "{'type': 'AvgPool2d', 'kernel_size': 3}", "[3, 2, 2]"},
    {"[3, 7, 6]", "{'type': 'AvgPool2d', 'kernel_size': 3, 'stride': 2, 'ceil_mode': true}",
     "[3, 3, 3]"},
    {"[3, 7, 6]", "{'type': 'Conv2d', 'out_channels': 2, 'kernel_size': [4, 9], 'padding': 'same'}",
     "[2, 7, 6]"},
    {"[3, 7, 6]", "{'type': 'Conv2d', 'out_channels': 2, 'kernel_size': 4, 'padding': 'valid'}",
     "[2, 4, 3]"},
    {"[3, 7, 6]", "{'type': 'SelectLast'}", "[7, 6]"},
    {"[9, 6]", "{'type': 'PositionalEmbedding', 'num_embeddings': 9}", "[9, 6]"},
    {"[9, 6]", "{'type': 'SelfAttention', 'num_heads': 3}", "[9, 6]"},
    {"[9, 6]", "{'type': 'RNN', 'hidden_size': 5}", "[9, 5]"},
    {"[9, 6]", "{'type': 'LSTM', 'hidden_size': 5, 'num_layers': 2, 'bidirectional': true}",
     "[9, 10]"},
};

START_TEST(outputs_have_pytorch_s_shapes)
{
    char layers[512], text[SHAPE_TEXT];
    snprintf(layers, sizeof layers, "{'type': 'Linear', 'out_features': 6}, %s", good[_i].layers);
    struct model *model = models_new(good[_i].input, layers, mse);
    ck_assert_str_eq(shape_format(&model->output, text), good[_i].output);
    models_free(model);
}
END_TEST

static const struct {
    const char *input, *layer, *message;
} bad[] = {
    {"[6]", "{'type': 'Softmax', 'dim': 2}",
     "layer \"0\" (Softmax): dim 2 is none of its input [N, 6] behind the batch"},
    {"[6]", "{'type': 'LogSoftmax', 'dim': -2}",
     "layer \"0\" (LogSoftmax): dim -2 is none of its input [N, 6] behind the batch"},
    {"[2, 6]", "{'type': 'LayerNorm', 'normalized_shape': 5}",
     "layer \"0\" (LayerNorm): normalized_shape is [5], but its input [N, 2, 6] does not end in "
     "it"},
    {"[6]", "{'type': 'LayerNorm', 'normalized_shape': [2, 6]}",
     "layer \"0\" (LayerNorm): normalized_shape is [2, 6], but its input [N, 6] does not end in "
     "it"},
    {"[2, 6]", "{'type': 'Reshape', 'shape': [5, -1]}",
     "layer \"0\" (Reshape): its input [N, 2, 6] has 12 elements a sample, and shape [5, -1] "
     "cannot "
     "hold them"},
    {"[2, 6]", "{'type': 'Reshape', 'shape': [2147483647, 2147483647, 2147483647]}",
     "layer \"0\" (Reshape): its input [N, 2, 6] has 12 elements a sample, and shape [2147483647, "
     "2147483647, 2147483647] cannot hold them"},
    {"[6]", "{'type': 'AvgPool2d', 'kernel_size': 2}",
     "layer \"0\" (AvgPool2d): it takes [N, C, H, W], but its input is [N, 6]"},
    {"[1, 2, 2]", "{'type': 'AvgPool2d', 'kernel_size': 3}",
     "layer \"0\" (AvgPool2d): kernel_size 3 (dilation 1) is larger than its input [N, 1, 2, 2], "
     "whose height is 2 with padding 0 on each side"},
    {"[4], 'dtype': 'float32'", "{'type': 'Embedding', 'num_embeddings': 3, 'embedding_dim': 2}",
     "layer \"0\" (Embedding): it takes int64, but its input 0 is float32"},
    {"[6]", "{'type': 'SelectLast'}",
     "layer \"0\" (SelectLast): it takes [N, T, E], but its input is [N, 6]"},
    {"[6]", "{'type': 'LSTM', 'hidden_size': 3}",
     "layer \"0\" (LSTM): it takes [N, T, F], but its input is [N, 6]"},
    {"[4, 6]", "{'type': 'GRU', 'hidden_size': 3, 'input_size': 4}",
     "layer \"0\" (GRU): input_size is 4, but its input [N, 4, 6] has 6"},
    {"[6]", "{'type': 'PositionalEmbedding', 'num_embeddings': 3}",
     "layer \"0\" (PositionalEmbedding): it takes [N, T, E], but its input is [N, 6]"},
    {"[4, 6]", "{'type': 'PositionalEmbedding', 'num_embeddings': 3}",
     "layer \"0\" (PositionalEmbedding): num_embeddings is 3, but its input [N, 4, 6] has 4 steps"},
    {"[4, 6]", "{'type': 'SelfAttention', 'num_heads': 4}",
     "layer \"0\" (SelfAttention): the 6 features of its input [N, 4, 6] cannot be parted in 4 "
     "heads"},
    {"[4, 6]", "{'type': 'SelfAttention', 'num_heads': 4, 'embed_dim': 8}",
     "layer \"0\" (SelfAttention): embed_dim is 8, but its input [N, 4, 6] has 6"},
};

START_TEST(shapes_that_do_not_fit_are_named)
{
    struct err err = ERR_INIT;
    struct model *model = NULL;
    struct job *job = models_job(bad[_i].input, bad[_i].layer, mse);
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), ERR_MODEL_SHAPE);
    ck_assert_str_eq(err.message, bad[_i].message);
    ck_assert_str_eq(err.path, "/model/layers/0");
    job_free(job);
}
END_TEST

START_TEST(inputs_that_differ_are_named)
{
    static const char *const layers[][2] = {
        {"{'type': 'Mul', 'name': 'm', 'inputs': ['a', 'input']}",
         "layer \"m\" (Mul): it takes inputs of one shape, but got [N, 2, 4] and [N, 2, 6]"},
        {"{'type': 'Cat', 'name': 'm', 'dim': 1, 'inputs': ['a', 'input']}",
         "layer \"m\" (Cat): it takes inputs of one shape but for dim 1, but got [N, 2, 4] and [N, "
         "2, 6]"},
    };
    for (int i = 0; i < 2; i++) {
        char text[512];
        struct err err = ERR_INIT;
        struct model *model = NULL;
        snprintf(text, sizeof text, "{'type': 'Linear', 'name': 'a', 'out_features': 4}, %s",
                 layers[i][0]);
        struct job *job = models_job("[2, 6]", text, mse);
        ck_assert_int_eq(model_build(job, &op_registry, &model, &err), ERR_MODEL_SHAPE);
        ck_assert_str_eq(err.message, layers[i][1]);
        ck_assert_str_eq(err.path, "/model/layers/1");
        job_free(job);
    }
}
END_TEST

/* As torch.nn.MultiheadAttention(6, 2) has them, in its state_dict's order. */
START_TEST(self_attention_has_pytorch_s_parameters)
{
    static const struct {
        const char *name, *shape;
        enum init_kind kind;
        double bound;
    } want[] = {
        {"a.in_proj_weight", "[18, 6]", INIT_UNIFORM, 0.5}, /* xavier: sqrt(6 / (18 + 6)) */
        {"a.in_proj_bias", "[18]", INIT_ZERO, 0},
        {"a.out_proj.weight", "[6, 6]", INIT_UNIFORM, 0.408248290},
        {"a.out_proj.bias", "[6]", INIT_ZERO, 0},
    };
    struct model *model =
        models_new("[5, 6]", "{'type': 'SelfAttention', 'name': 'a', 'num_heads': 2}", mse);
    for (int i = 0; i < 4; i++) {
        const struct variable *variable = &model->variables[i];
        char text[SHAPE_TEXT];
        ck_assert_str_eq(variable->name, want[i].name);
        ck_assert_str_eq(shape_format(&variable->shape, text), want[i].shape);
        ck_assert_int_eq(variable->init.kind, want[i].kind);
        ck_assert_double_eq_tol(variable->init.bound, want[i].bound, 1e-8);
    }
    ck_assert_int_eq(model->first_gradient, 4);
    models_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shapes");
    TCase *tcase = checks_case(suite, "layers", 0);
    tcase_add_loop_test(tcase, outputs_have_pytorch_s_shapes, 0, sizeof good / sizeof *good);
    tcase_add_loop_test(tcase, shapes_that_do_not_fit_are_named, 0, sizeof bad / sizeof *bad);
    tcase_add_test(tcase, inputs_that_differ_are_named);
    tcase_add_test(tcase, self_attention_has_pytorch_s_parameters);
    return checks_run(suite);
}
