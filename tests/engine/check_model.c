/* check_model.c: a model's variables, and the layers that do not fit. */
#include <stdio.h>
#include <string.h>

#include "engine/ops/registry.h"
#include "tests/engine/models.h"
#include "tests/lib/checks.h"

static const char *const mse = "'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 1}";

START_TEST(variables_stand_in_the_order_of_a_state_dict)
{
    static const struct {
        const char *name, *shape;
        enum dtype dtype;
        enum variable_kind kind;
        int of;
        struct init_rule init;
    } want[] = {
        {"conv1.weight",
         "[4, 2, 3, 3]",
         DTYPE_F32,
         VARIABLE_PARAMETER,
         -1,
         {INIT_UNIFORM, 0.2357, 0}},
        {"conv1.bias", "[4]", DTYPE_F32, VARIABLE_PARAMETER, -1, {INIT_UNIFORM, 0.2357, 0}},
        {"bn1.weight", "[4]", DTYPE_F32, VARIABLE_PARAMETER, -1, {INIT_ONE, 0, 0}},
        {"bn1.bias", "[4]", DTYPE_F32, VARIABLE_PARAMETER, -1, {INIT_ZERO, 0, 0}},
        {"bn1.running_mean", "[4]", DTYPE_F32, VARIABLE_BUFFER, -1, {INIT_ZERO, 0, 0}},
        {"bn1.running_var", "[4]", DTYPE_F32, VARIABLE_BUFFER, -1, {INIT_ONE, 0, 0}},
        {"bn1.num_batches_tracked", "[]", DTYPE_I64, VARIABLE_BUFFER, -1, {INIT_ZERO, 0, 0}},
        {"3.weight", "[10, 64]", DTYPE_F32, VARIABLE_PARAMETER, -1, {INIT_UNIFORM, 0.125, 0}},
        {"3.weight.grad", "[10, 64]", DTYPE_F32, VARIABLE_GRADIENT, 7, {INIT_ZERO, 0, 0}},
        {"bn1.weight.grad", "[4]", DTYPE_F32, VARIABLE_GRADIENT, 2, {INIT_ZERO, 0, 0}},
        {"bn1.bias.grad", "[4]", DTYPE_F32, VARIABLE_GRADIENT, 3, {INIT_ZERO, 0, 0}},
        {"conv1.weight.grad", "[4, 2, 3, 3]", DTYPE_F32, VARIABLE_GRADIENT, 0, {INIT_ZERO, 0, 0}},
        {"conv1.bias.grad", "[4]", DTYPE_F32, VARIABLE_GRADIENT, 1, {INIT_ZERO, 0, 0}},
        {"conv1.weight.momentum_buffer", "[4, 2, 3, 3]", DTYPE_F32, VARIABLE_OPTIMIZER, 0, {0}},
        {"conv1.bias.momentum_buffer", "[4]", DTYPE_F32, VARIABLE_OPTIMIZER, 1, {0}},
        {"bn1.weight.momentum_buffer", "[4]", DTYPE_F32, VARIABLE_OPTIMIZER, 2, {0}},
        {"bn1.bias.momentum_buffer", "[4]", DTYPE_F32, VARIABLE_OPTIMIZER, 3, {0}},
        {"3.weight.momentum_buffer", "[10, 64]", DTYPE_F32, VARIABLE_OPTIMIZER, 7, {0}},
    };
    struct model *model = models_new(
        "[4, 4, 4]",
        "{'type': 'Conv2d', 'name': 'conv1', 'out_channels': 4, 'kernel_size': 3, 'padding': 1,"
        " 'groups': 2},"
        "{'type': 'BatchNorm2d', 'name': 'bn1'}, {'type': 'Flatten'},"
        "{'type': 'Linear', 'out_features': 10, 'in_features': 64, 'bias': false}",
        NULL);
    const size_t n = sizeof want / sizeof *want;
    ck_assert_uint_eq(model->n_variables, n);
    for (size_t i = 0; i < n; i++) {
        const struct variable *got = &model->variables[i];
        char shape[SHAPE_TEXT];
        ck_assert_str_eq(got->name, want[i].name);
        ck_assert_str_eq(shape_format(&got->shape, shape), want[i].shape);
        ck_assert_int_eq(got->dtype, want[i].dtype);
        ck_assert_int_eq(got->kind, want[i].kind);
        ck_assert_int_eq(got->of, want[i].of);
        ck_assert_int_eq(got->layer, got->kind > VARIABLE_BUFFER ? -1
                                     : got->name[0] == 'c'       ? 0
                                     : got->name[0] == 'b'       ? 1
                                                                 : 3);
        ck_assert_int_eq(got->init.kind, want[i].init.kind);
        ck_assert_double_eq_tol(got->init.bound, want[i].init.bound, 1e-4);
        ck_assert_int_eq(model_find(model, want[i].name), (int)i);
        if (got->kind == VARIABLE_GRADIENT)
            ck_assert_int_eq(model->variables[got->of].gradient, (int)i);
        if (got->kind == VARIABLE_OPTIMIZER)
            ck_assert_int_eq(model->variables[got->of].state, (int)i);
    }
    ck_assert_int_eq(model_find(model, "fc.weight"), -1);
    ck_assert_int_eq(model->n_parameters, 4 * 2 * 9 + 4 + 4 + 4 + 640);
    ck_assert_int_eq(model->first_gradient, 8);
    ck_assert_int_eq(model->n_gradients, 5);
    models_free(model);
}
END_TEST

START_TEST(targets_follow_from_the_loss)
{
    struct model *model = models_new("[5]", "{'type': 'Linear', 'out_features': 3}", NULL);
    ck_assert(shape_equal(&model->output, &SHAPE(3)));
    ck_assert_int_eq(model->target.rank, 0);
    ck_assert_int_eq(model->target_dtype, DTYPE_I64);
    ck_assert_int_eq(model->classes, 3);
    ck_assert_int_eq(model->loss_terms, 1);
    models_free(model);

    model = models_new("[2, 5]", "{'type': 'Linear', 'out_features': 3}", NULL);
    ck_assert(shape_equal(&model->target, &SHAPE(2)));
    ck_assert_int_eq(model->loss_terms, 2);
    ck_assert_int_eq(*model->ignored, -100);
    models_free(model);

    model = models_new("[2, 5]", "{'type': 'Linear', 'out_features': 3}", mse);
    ck_assert(shape_equal(&model->target, &SHAPE(2, 3)));
    ck_assert_int_eq(model->target_dtype, DTYPE_F32);
    ck_assert_int_eq(model->classes, 0);
    ck_assert_int_eq(model->loss_terms, 6);
    ck_assert_int_eq(model_find(model, "0.weight.momentum_buffer"), -1); /* momentum 0 */
    models_free(model);

    model = models_new("[5]", "{'type': 'Linear', 'out_features': 3}", mse);
    ck_assert_int_eq(model->classes, 3);
    models_free(model);
}
END_TEST

START_TEST(buckets_are_runs_of_gradients)
{
    struct model *model = models_new("[5]",
                                     "{'type': 'Linear', 'out_features': 8},"
                                     "{'type': 'Linear', 'out_features': 2}",
                                     NULL);
    int first = model->first_gradient; /* bytes: 64, 8, 160, 32 */
    int end = first + model->n_gradients;
    ck_assert_int_eq(model_bucket_end(model, first, end, 1), first);
    ck_assert_int_eq(model_bucket_end(model, first, end, 64), first);
    ck_assert_int_eq(model_bucket_end(model, first, end, 65), first + 1);
    ck_assert_int_eq(model_bucket_end(model, first, end, 73), first + 2);
    ck_assert_int_eq(model_bucket_end(model, first, end, 1 << 20), first + 3);
    ck_assert_int_eq(model_bucket_end(model, first + 3, end, 1 << 20), first + 3);
    models_free(model);
}
END_TEST

static const struct {
    const char *input, *layers, *path, *message;
} misfits[] = {
    {"[128]", "{'type': 'Linear', 'name': 'fc', 'in_features': 100, 'out_features': 2}",
     "/model/layers/0",
     "layer \"fc\" (Linear): in_features is 100, but its input [N, 128] has 128"},
    {"[3, 8, 8]",
     "{'type': 'ReLU'}, {'type': 'Conv2d', 'in_channels': 1, 'out_channels': 2, 'kernel_size': 3}",
     "/model/layers/1", "layer \"1\" (Conv2d): in_channels is 1, but its input [N, 3, 8, 8] has 3"},
    {"[64]", "{'type': 'Conv2d', 'name': 'c', 'out_channels': 2, 'kernel_size': 3}",
     "/model/layers/0", "layer \"c\" (Conv2d): it takes [N, C, H, W], but its input is [N, 64]"},
    {"[1, 6, 8]",
     "{'type': 'Conv2d', 'name': 'c', 'out_channels': 2, 'kernel_size': 9, 'padding': 1}",
     "/model/layers/0",
     "layer \"c\" (Conv2d): kernel_size 9 (dilation 1) is larger than its input [N, 1, 6, 8], "
     "whose height is 6 with padding 1 on each side"},
    {"[1, 8, 8]",
     "{'type': 'Conv2d', 'name': 'c', 'out_channels': 2, 'kernel_size': 5, 'dilation': [1, 2]}",
     "/model/layers/0",
     "layer \"c\" (Conv2d): kernel_size 5 (dilation 2) is larger than its input [N, 1, 8, 8], "
     "whose width is 8 with padding 0 on each side"},
    {"[3, 8, 8]",
     "{'type': 'Conv2d', 'name': 'c', 'out_channels': 2, 'kernel_size': 3, 'groups': 2}",
     "/model/layers/0",
     "layer \"c\" (Conv2d): the 3 channels of its input [N, 3, 8, 8] cannot be parted in 2 groups"},
    {"[1, 4, 4]", "{'type': 'MaxPool2d', 'name': 'p', 'kernel_size': 5}", "/model/layers/0",
     "layer \"p\" (MaxPool2d): kernel_size 5 (dilation 1) is larger than its input [N, 1, 4, 4], "
     "whose height is 4 with padding 0 on each side"},
    {"[4]", "{'type': 'MaxPool2d', 'name': 'p', 'kernel_size': 2}", "/model/layers/0",
     "layer \"p\" (MaxPool2d): it takes [N, C, H, W], but its input is [N, 4]"},
    {"[4]", "{'type': 'AdaptiveAvgPool2d', 'name': 'p', 'output_size': 1}", "/model/layers/0",
     "layer \"p\" (AdaptiveAvgPool2d): it takes [N, C, H, W], but its input is [N, 4]"},
    {"[4, 2, 2]", "{'type': 'BatchNorm1d', 'name': 'b'}", "/model/layers/0",
     "layer \"b\" (BatchNorm1d): it takes [N, C], but its input is [N, 4, 2, 2]"},
    {"[4]", "{'type': 'BatchNorm2d', 'name': 'b'}", "/model/layers/0",
     "layer \"b\" (BatchNorm2d): it takes [N, C, H, W], but its input is [N, 4]"},
    {"[4, 2, 2]", "{'type': 'BatchNorm2d', 'name': 'b', 'num_features': 3}", "/model/layers/0",
     "layer \"b\" (BatchNorm2d): num_features is 3, but its input [N, 4, 2, 2] has 4"},
    {"[4, 2]", "{'type': 'Flatten', 'name': 'f', 'start_dim': 1, 'end_dim': 3}", "/model/layers/0",
     "layer \"f\" (Flatten): start_dim 1, end_dim 3 are no range of its input [N, 4, 2] behind the "
     "batch dimension"},
    {"[4]",
     "{'type': 'Linear', 'name': 'a', 'out_features': 3},"
     "{'type': 'Add', 'name': 's', 'inputs': ['a', 'input']}",
     "/model/layers/1",
     "layer \"s\" (Add): it takes inputs of one shape, but got [N, 3] and [N, 4]"},
    {"[4]", "{'type': 'ReLU'}", "/model/layers",
     "the model has no parameters that could be trained"},
    {"[4]",
     "{'type': 'Linear', 'name': 'fc', 'out_features': 4},"
     "{'type': 'ReLU', 'name': 'r', 'inputs': ['input']}",
     "/model/layers", "no parameter is trained: the last layer \"r\" depends on none"},
    {"[1048576]", "{'type': 'Linear', 'name': 'fc', 'out_features': 1048577}", "/model/layers/0",
     "a tensor of shape [1048577, 1048576] is larger than 2^40 elements"},
};

START_TEST(misfit_names_layer_got_and_wanted)
{
    struct err err = ERR_INIT;
    struct model *model = NULL;
    struct job *job = models_job(misfits[_i].input, misfits[_i].layers, NULL);
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), ERR_MODEL_SHAPE);
    ck_assert_str_eq(err.message, misfits[_i].message);
    ck_assert_str_eq(err.path, misfits[_i].path);
    ck_assert_ptr_null(model);
    job_free(job);
}
END_TEST

/* Of a model whose output is [2, 3]. */
static const struct {
    const char *more, *path, *message;
} bad_members[] = {
    {"'loss': {'type': 'CrossEntropyLoss', 'weight': [1, 2]}, 'optimizer': {'type': 'Adam'}",
     "/loss/weight", "weight has 2 numbers, but the output has 3 classes"},
    {"'loss': {'type': 'BCEWithLogitsLoss', 'pos_weight': [1, 2]}, 'optimizer': {'type': 'Adam'}",
     "/loss/pos_weight", "pos_weight has 2 numbers, but the output's last dimension is 3"},
};

START_TEST(bad_members_are_named)
{
    struct err err = ERR_INIT;
    struct model *model = NULL;
    struct job *job =
        models_job("[2, 5]", "{'type': 'Linear', 'out_features': 3}", bad_members[_i].more);
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), ERR_MODEL_SHAPE);
    ck_assert_str_eq(err.message, bad_members[_i].message);
    ck_assert_str_eq(err.path, bad_members[_i].path);
    job_free(job);
}
END_TEST

START_TEST(frozen_layers_have_neither_gradients_nor_state)
{
    struct err err = ERR_INIT;
    struct model *model = NULL;
    struct job *job = models_job(models_cnn_input, models_cnn, NULL);
    job->model.layers[0].frozen = job->model.layers[1].frozen = true;
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), 0);
    ck_assert_int_eq(model->n_gradients, 4);
    ck_assert_int_eq(model_find(model, "conv1.weight.grad"), -1);
    ck_assert_int_eq(model_find(model, "bn1.bias.momentum_buffer"), -1);
    ck_assert_int_ge(model_find(model, "conv2.weight.momentum_buffer"), 0);
    models_free(model);
    job = models_job("[4]", "{'type': 'Linear', 'out_features': 3}", NULL);
    job->model.layers[0].frozen = true;
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), ERR_MODEL_SHAPE);
    ck_assert_str_eq(err.path, "/model/freeze");
    job_free(job);
}
END_TEST

/* Output sizes of windows as PyTorch's MaxPool2d and Conv2d give them. */
static const struct {
    const char *layer, *output;
} windows[] = {
    {"{'type': 'MaxPool2d', 'kernel_size': 2}", "[1, 5, 3]"},
    {"{'type': 'MaxPool2d', 'kernel_size': 2, 'ceil_mode': true}", "[1, 5, 4]"},
    {"{'type': 'MaxPool2d', 'kernel_size': 3, 'stride': 2, 'padding': 1}", "[1, 5, 4]"},
    {"{'type': 'MaxPool2d', 'kernel_size': 3, 'stride': 2, 'padding': 1, 'ceil_mode': true}",
     "[1, 6, 4]"},
    {"{'type': 'MaxPool2d', 'kernel_size': 1, 'stride': 4, 'ceil_mode': true}", "[1, 3, 2]"},
    {"{'type': 'MaxPool2d', 'kernel_size': [3, 2], 'stride': [1, 2], 'dilation': [2, 1]}",
     "[1, 6, 3]"},
    {"{'type': 'Conv2d', 'out_channels': 6, 'kernel_size': 3}", "[6, 8, 5]"},
    {"{'type': 'Conv2d', 'out_channels': 6, 'kernel_size': [5, 3], 'padding': [2, 0],"
     " 'stride': [2, 1], 'dilation': [1, 2]}",
     "[6, 5, 3]"},
    {"{'type': 'AdaptiveAvgPool2d', 'output_size': [3, 2]}", "[1, 3, 2]"},
    {"{'type': 'Flatten', 'start_dim': 2}", "[1, 70]"},
    {"{'type': 'Flatten', 'start_dim': 1, 'end_dim': 2}", "[10, 7]"},
    {"{'type': 'Flatten', 'start_dim': 1, 'end_dim': -1}", "[70]"},
    {"{'type': 'Flatten', 'start_dim': 2, 'end_dim': 2}", "[1, 10, 7]"},
};

START_TEST(output_shape)
{
    char layers[512], text[SHAPE_TEXT];
    snprintf(layers, sizeof layers, "{'type': 'Conv2d', 'out_channels': 1, 'kernel_size': 1}, %s",
             windows[_i].layer);
    struct model *model = models_new("[1, 10, 7]", layers, mse);
    ck_assert_str_eq(shape_format(&model->output, text), windows[_i].output);
    models_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model");
    TCase *tcase = checks_case(suite, "model", 0);
    tcase_add_test(tcase, variables_stand_in_the_order_of_a_state_dict);
    tcase_add_test(tcase, targets_follow_from_the_loss);
    tcase_add_test(tcase, buckets_are_runs_of_gradients);
    tcase_add_loop_test(tcase, misfit_names_layer_got_and_wanted, 0,
                        (int)(sizeof misfits / sizeof *misfits));
    tcase_add_loop_test(tcase, bad_members_are_named, 0,
                        (int)(sizeof bad_members / sizeof *bad_members));
    tcase_add_test(tcase, frozen_layers_have_neither_gradients_nor_state);
    tcase_add_loop_test(tcase, output_shape, 0, (int)(sizeof windows / sizeof *windows));
    return checks_run(suite);
}
