/* check_graph.c: a step's nodes, as text. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/graph.h"
#include "engine/ops/registry.h"
#include "tests/engine/models.h"
#include "tests/lib/checks.h"

static const char *const mse = "'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 1}";

static struct graph *build(const struct model *model, struct graph_options options)
{
    struct err err = ERR_INIT;
    struct graph *graph = NULL;
    int rc = graph_build(model, &op_registry, &options, &graph, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    return graph;
}

static void check_dump(const struct model *model, struct graph_options options, const char *want)
{
    struct graph *graph = build(model, options);
    char *text = graph_dump(graph);
    ck_assert_str_eq(text, want);
    free(text);
    graph_free(graph);
}

START_TEST(mlp_training_computes_no_gradient_of_the_data)
{
    struct model *model = models_new("[2, 5]",
                                     "{'type': 'Linear', 'name': 'a', 'out_features': 4},"
                                     "{'type': 'ReLU', 'name': 'r'},"
                                     "{'type': 'Linear', 'name': 'b', 'out_features': 3,"
                                     " 'bias': false}",
                                     mse);
    check_dump(model, (struct graph_options){.batch = 6, .training = true, .n_replicas = 1},
               "F a linear(input, a.weight, a.bias) -> %3 [6, 2, 4]\n"
               "F r relu(%3) -> %4 [6, 2, 4]\n"
               "F b linear(%4, b.weight, -) -> %6 [6, 2, 3]\n"
               "F loss mse(%6, target) -> %8 [1], %9 [6, 2, 3]\n"
               "W b linear_weight_grad(%4, %9) -> b.weight.grad\n"
               "I b linear_input_grad(%9, b.weight) -> %11 [6, 2, 4]\n"
               "I r relu_grad(%4, %11) -> %12 [6, 2, 4]\n"
               "W a linear_weight_grad(input, %12) -> a.weight.grad, a.bias.grad\n"
               "U a.weight sgd(a.weight, a.weight.grad)\n"
               "U a.bias sgd(a.bias, a.bias.grad)\n"
               "U b.weight sgd(b.weight, b.weight.grad)\n");
    models_free(model);
}
END_TEST

/* Buckets of 100 bytes: fc.weight alone, fc.bias to conv2.weight, conv2.bias to conv1.weight, the
 * rest. */
START_TEST(cnn_training_reduces_each_bucket_as_soon_as_it_is_made)
{
    struct model *model = models_new(models_cnn_input, models_cnn, NULL);
    const struct graph_options options = {
        .batch = 4, .training = true, .n_replicas = 2, .bucket_bytes = 100};
    check_dump(
        model, options,
        "F conv1 conv2d(input, conv1.weight, conv1.bias) -> %3 [4, 4, 8, 8]\n"
        "F bn1 batch_norm_relu(%3, bn1.weight, bn1.bias, bn1.running_mean, bn1.running_var, "
        "bn1.num_batches_tracked) -> %11 [4, 4, 8, 8], %9 [4], %10 [4]\n"
        "F pool1 max_pool2d(%11) -> %12 [4, 4, 4, 4], %13 [4, 4, 4, 4]\n"
        "F conv2 conv2d(%12, conv2.weight, conv2.bias) -> %16 [4, 4, 4, 4]\n"
        "F sum add(%16, %12) -> %17 [4, 4, 4, 4]\n"
        "F flat reshape(%17) -> %18 [4, 64]\n"
        "F drop dropout(%18) -> %19 [4, 64]\n"
        "F fc linear(%19, fc.weight, fc.bias) -> %22 [4, 10]\n"
        "F loss cross_entropy(%22, target) -> %24 [1], %25 [4, 10]\n"
        "W fc linear_weight_grad(%19, %25) -> fc.weight.grad, fc.bias.grad\n"
        "R gradients all_reduce_start(fc.weight.grad, fc.weight.grad)\n"
        "I fc linear_input_grad(%25, fc.weight) -> %28 [4, 64]\n"
        "I drop dropout_grad(%28) -> %29 [4, 64]\n"
        "I flat reshape(%29) -> %30 [4, 4, 4, 4]\n"
        "W conv2 conv2d_weight_grad(%12, %30) -> conv2.weight.grad, conv2.bias.grad\n"
        "R gradients all_reduce_start(fc.bias.grad, conv2.weight.grad)\n"
        "I conv2 conv2d_input_grad(%30, conv2.weight) -> %33 [4, 4, 4, 4]\n"
        "I conv2 add(%30, %33) -> %34 [4, 4, 4, 4]\n"
        "I pool1 max_pool2d_grad(%34, %13) -> %35 [4, 4, 8, 8]\n"
        "I bn1 batch_norm_relu_grad(%3, %35, bn1.weight, bn1.bias, %9, %10) -> "
        "%36 [4, 4, 8, 8], bn1.weight.grad, bn1.bias.grad\n"
        "W conv1 conv2d_weight_grad(input, %36) -> conv1.weight.grad, conv1.bias.grad\n"
        "R gradients all_reduce_start(conv2.bias.grad, conv1.weight.grad)\n"
        "R gradients all_reduce(conv1.bias.grad, conv1.bias.grad)\n"
        "U conv1.weight sgd(conv1.weight, conv1.weight.grad, -, conv1.weight.momentum_buffer)\n"
        "U conv1.bias sgd(conv1.bias, conv1.bias.grad, -, conv1.bias.momentum_buffer)\n"
        "U bn1.weight sgd(bn1.weight, bn1.weight.grad, -, bn1.weight.momentum_buffer)\n"
        "U bn1.bias sgd(bn1.bias, bn1.bias.grad, -, bn1.bias.momentum_buffer)\n"
        "U conv2.weight sgd(conv2.weight, conv2.weight.grad, -, conv2.weight.momentum_buffer)\n"
        "U conv2.bias sgd(conv2.bias, conv2.bias.grad, -, conv2.bias.momentum_buffer)\n"
        "U fc.weight sgd(fc.weight, fc.weight.grad, -, fc.weight.momentum_buffer)\n"
        "U fc.bias sgd(fc.bias, fc.bias.grad, -, fc.bias.momentum_buffer)\n");
    models_free(model);
}
END_TEST

START_TEST(cnn_evaluation_predicts_and_changes_nothing)
{
    struct model *model = models_new(models_cnn_input, models_cnn, NULL);
    check_dump(model, (struct graph_options){.batch = 1, .n_replicas = 2},
               "F conv1 conv2d(input, conv1.weight, conv1.bias) -> %3 [1, 4, 8, 8]\n"
               "F bn1 batch_norm_relu_eval(%3, bn1.weight, bn1.bias, bn1.running_mean, "
               "bn1.running_var) -> %9 [1, 4, 8, 8]\n"
               "F pool1 max_pool2d(%9) -> %10 [1, 4, 4, 4]\n"
               "F conv2 conv2d(%10, conv2.weight, conv2.bias) -> %13 [1, 4, 4, 4]\n"
               "F sum add(%13, %10) -> %14 [1, 4, 4, 4]\n"
               "F flat reshape(%14) -> %15 [1, 64]\n"
               "F fc linear(%15, fc.weight, fc.bias) -> %18 [1, 10]\n"
               "F loss cross_entropy(%18, target) -> %20 [1]\n"
               "F loss argmax(%18) -> %21 [1]\n");
    models_free(model);
}
END_TEST

/* A BatchNorm that tracks nothing normalises by its batch in an evaluation too. */
START_TEST(batch_norm_without_running_statistics)
{
    struct model *model = models_new("[4]",
                                     "{'type': 'BatchNorm1d', 'name': 'bn', 'affine': false,"
                                     " 'track_running_stats': false},"
                                     "{'type': 'Linear', 'name': 'fc', 'out_features': 3}",
                                     NULL);
    check_dump(model, (struct graph_options){.batch = 5, .n_replicas = 1},
               "F bn batch_norm(input, -, -, -, -, -) -> %1 [5, 4], %2 [4], %3 [4]\n"
               "F fc linear(%1, fc.weight, fc.bias) -> %6 [5, 3]\n"
               "F loss cross_entropy(%6, target) -> %8 [1]\n"
               "F loss argmax(%6) -> %9 [5]\n");
    models_free(model);
}
END_TEST

/* It adds zeros in the same all-reduces as the others and makes the same updates. */
START_TEST(resting_replica_keeps_the_order_of_collectives)
{
    struct model *model = models_new("[5]",
                                     "{'type': 'Linear', 'name': 'a', 'out_features': 8},"
                                     "{'type': 'Linear', 'name': 'b', 'out_features': 2}",
                                     mse);
    struct graph_options options = {.training = true, .n_replicas = 3, .bucket_bytes = 65};
    check_dump(model, options,
               "W gradients zero(b.weight.grad, a.bias.grad)\n"
               "R gradients all_reduce_start(b.weight.grad, b.bias.grad)\n"
               "R gradients all_reduce_start(a.weight.grad, a.weight.grad)\n"
               "R gradients all_reduce(a.bias.grad, a.bias.grad)\n"
               "U a.weight sgd(a.weight, a.weight.grad)\n"
               "U a.bias sgd(a.bias, a.bias.grad)\n"
               "U b.weight sgd(b.weight, b.weight.grad)\n"
               "U b.bias sgd(b.bias, b.bias.grad)\n");
    options.batch = 7;
    check_dump(model, options,
               "F a linear(input, a.weight, a.bias) -> %3 [7, 8]\n"
               "F b linear(%3, b.weight, b.bias) -> %6 [7, 2]\n"
               "F loss mse(%6, target) -> %8 [1], %9 [7, 2]\n"
               "W b linear_weight_grad(%3, %9) -> b.weight.grad, b.bias.grad\n"
               "R gradients all_reduce_start(b.weight.grad, b.bias.grad)\n"
               "I b linear_input_grad(%9, b.weight) -> %12 [7, 8]\n"
               "W a linear_weight_grad(input, %12) -> a.weight.grad, a.bias.grad\n"
               "R gradients all_reduce_start(a.weight.grad, a.weight.grad)\n"
               "R gradients all_reduce(a.bias.grad, a.bias.grad)\n"
               "U a.weight sgd(a.weight, a.weight.grad)\n"
               "U a.bias sgd(a.bias, a.bias.grad)\n"
               "U b.weight sgd(b.weight, b.weight.grad)\n"
               "U b.bias sgd(b.bias, b.bias.grad)\n");
    models_free(model);
}
END_TEST

/* a is read by the ReLU and twice by the sum: three contributions, two additions. */
START_TEST(gradients_of_a_fan_out_are_added)
{
    struct model *model = models_new("[4]",
                                     "{'type': 'Linear', 'name': 'a', 'out_features': 4},"
                                     "{'type': 'ReLU', 'name': 'r'},"
                                     "{'type': 'Add', 'name': 's', 'inputs': ['a', 'r', 'a']}",
                                     mse);
    check_dump(model, (struct graph_options){.batch = 2, .training = true, .n_replicas = 1},
               "F a linear(input, a.weight, a.bias) -> %3 [2, 4]\n"
               "F r relu(%3) -> %4 [2, 4]\n"
               "F s add(%3, %4, %3) -> %5 [2, 4]\n"
               "F loss mse(%5, target) -> %7 [1], %8 [2, 4]\n"
               "I s add(%8, %8) -> %9 [2, 4]\n"
               "I r relu_grad(%4, %8) -> %10 [2, 4]\n"
               "I r add(%9, %10) -> %11 [2, 4]\n"
               "W a linear_weight_grad(input, %11) -> a.weight.grad, a.bias.grad\n"
               "U a.weight sgd(a.weight, a.weight.grad)\n"
               "U a.bias sgd(a.bias, a.bias.grad)\n");
    models_free(model);
}
END_TEST

/* Its variables are there, as in a state_dict; nothing runs and nothing is updated. */
START_TEST(layer_that_nothing_reads_leaves_no_node)
{
    struct model *model = models_new("[4]",
                                     "{'type': 'Linear', 'name': 'dead', 'out_features': 9},"
                                     "{'type': 'ReLU', 'name': 'dead_too'},"
                                     "{'type': 'Linear', 'name': 'fc', 'out_features': 2,"
                                     " 'inputs': ['input']}",
                                     mse);
    ck_assert_int_eq(model->variables[model_find(model, "dead.weight")].gradient, -1);
    ck_assert_int_eq(model_find(model, "dead.weight.grad"), -1);
    check_dump(model, (struct graph_options){.batch = 3, .training = true, .n_replicas = 1},
               "F fc linear(input, fc.weight, fc.bias) -> %5 [3, 2]\n"
               "F loss mse(%5, target) -> %7 [1], %8 [3, 2]\n"
               "W fc linear_weight_grad(input, %8) -> fc.weight.grad, fc.bias.grad\n"
               "U fc.weight sgd(fc.weight, fc.weight.grad)\n"
               "U fc.bias sgd(fc.bias, fc.bias.grad)\n");
    models_free(model);
}
END_TEST

/* Of the frozen BatchNorm only the input's gradient is computed, of what is before it nothing;
 * the norm of all gradients stands between the last all-reduce and the updates. */
START_TEST(frozen_layers_and_clipped_gradients)
{
    struct err err = ERR_INIT;
    struct model *model = NULL;
    struct job *job = models_job("[4]",
                                 "{'type': 'Linear', 'name': 'a', 'out_features': 4},"
                                 "{'type': 'Linear', 'name': 'b', 'out_features': 4},"
                                 "{'type': 'BatchNorm1d', 'name': 'bn'},"
                                 "{'type': 'Linear', 'name': 'c', 'out_features': 2}",
                                 "'loss': {'type': 'L1Loss'},"
                                 "'optimizer': {'type': 'RMSprop', 'centered': true}");
    job->train.clip_grad_norm = 1;
    job->model.layers[0].frozen = job->model.layers[2].frozen = true;
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), 0);
    check_dump(model, (struct graph_options){.batch = 6, .training = true, .n_replicas = 2},
               "F a linear(input, a.weight, a.bias) -> %3 [6, 4]\n"
               "F b linear(%3, b.weight, b.bias) -> %6 [6, 4]\n"
               "F bn batch_norm(%6, bn.weight, bn.bias, bn.running_mean, bn.running_var, "
               "bn.num_batches_tracked) -> %12 [6, 4], %13 [4], %14 [4]\n"
               "F c linear(%12, c.weight, c.bias) -> %17 [6, 2]\n"
               "F loss l1(%17, target) -> %19 [1], %20 [6, 2]\n"
               "W c linear_weight_grad(%12, %20) -> c.weight.grad, c.bias.grad\n"
               "R gradients all_reduce_start(c.weight.grad, c.weight.grad)\n"
               "R gradients all_reduce_start(c.bias.grad, c.bias.grad)\n"
               "I c linear_input_grad(%20, c.weight) -> %23 [6, 4]\n"
               "I bn batch_norm_grad(%6, %23, bn.weight, %13, %14) -> %24 [6, 4]\n"
               "W b linear_weight_grad(%3, %24) -> b.weight.grad, b.bias.grad\n"
               "R gradients all_reduce_start(b.weight.grad, b.weight.grad)\n"
               "R gradients all_reduce(b.bias.grad, b.bias.grad)\n"
               "U gradients clip_grad_norm(c.weight.grad, b.bias.grad) -> %27 [1]\n"
               "U b.weight rmsprop(b.weight, b.weight.grad, %27, b.weight.square_avg, -, "
               "b.weight.grad_avg)\n"
               "U b.bias rmsprop(b.bias, b.bias.grad, %27, b.bias.square_avg, -, "
               "b.bias.grad_avg)\n"
               "U c.weight rmsprop(c.weight, c.weight.grad, %27, c.weight.square_avg, -, "
               "c.weight.grad_avg)\n"
               "U c.bias rmsprop(c.bias, c.bias.grad, %27, c.bias.square_avg, -, "
               "c.bias.grad_avg)\n");
    models_free(model);
}
END_TEST

START_TEST(batch_norm_of_one_value_a_channel_is_refused)
{
    struct err err = ERR_INIT;
    struct graph *graph = NULL;
    struct model *model = models_new("[4]",
                                     "{'type': 'Linear', 'out_features': 4},"
                                     "{'type': 'BatchNorm1d', 'name': 'bn'}",
                                     NULL);
    struct graph_options options = {.batch = 1, .training = true, .n_replicas = 1};
    ck_assert_int_eq(graph_build(model, &op_registry, &options, &graph, &err), ERR_MODEL_SHAPE);
    ck_assert_str_eq(err.path, "/model/layers/1");
    ck_assert_str_eq(
        err.message,
        "layer \"bn\" (BatchNorm1d): a chunk of 1 sample has one value a channel, and "
        "batch statistics need more; choose a batch_size or devices that leave no such "
        "chunk, or drop_last");
    options.training = false;
    graph_free(build(model, options));
    options = (struct graph_options){.batch = 2, .training = true, .n_replicas = 1};
    graph_free(build(model, options));
    models_free(model);
}
END_TEST

START_TEST(host_reads_loss_and_in_an_evaluation_output_and_prediction)
{
    struct model *model = models_new("[4]", "{'type': 'Linear', 'out_features': 3}", NULL);
    struct graph *graph =
        build(model, (struct graph_options){.batch = 2, .training = true, .n_replicas = 1});
    ck_assert(graph->loss->output && !graph->output->output);
    ck_assert_ptr_null(graph->prediction);
    ck_assert_int_eq(graph->loss->dtype, DTYPE_F64);
    graph_free(graph);
    graph = build(model, (struct graph_options){.batch = 2, .n_replicas = 1});
    ck_assert(graph->loss->output && graph->output->output && graph->prediction->output);
    ck_assert_int_eq(graph->prediction->dtype, DTYPE_I64);
    graph_free(graph);
    graph = build(model, (struct graph_options){.batch = 0, .n_replicas = 2});
    ck_assert_uint_eq(graph->n_nodes, 0);
    graph_free(graph);
    models_free(model);
}
END_TEST

START_TEST(means_divide_by_what_pytorch_divides_by)
{
    const int64_t labels[] = {0, 2, 1, -7, 2, 1, 0, -7};
    struct model *model = models_new("[4]", "{'type': 'Linear', 'out_features': 3}", NULL);
    ck_assert_double_eq(graph_loss_divisor(model, labels, 3), 3);
    models_free(model);
    model = models_new("[2, 4]", "{'type': 'Linear', 'out_features': 3}",
                       "'loss': {'type': 'CrossEntropyLoss', 'ignore_index': -7},"
                       "'optimizer': {'type': 'Adam'}");
    ck_assert_double_eq(graph_loss_divisor(model, labels, 4), 6);
    ck_assert_double_eq(graph_loss_divisor(model, labels + 3, 0), 0);
    models_free(model);
    model = models_new("[4]", "{'type': 'Linear', 'out_features': 3}",
                       "'loss': {'type': 'NLLLoss', 'ignore_index': -7, 'weight': [1, 2.5, 0.25]},"
                       "'optimizer': {'type': 'Adam'}");
    ck_assert_double_eq(graph_loss_divisor(model, labels, 8), 1 + 0.25 + 2.5 + 0.25 + 2.5 + 1);
    models_free(model);
    model = models_new("[2, 4]", "{'type': 'Linear', 'out_features': 3}", mse);
    ck_assert_double_eq(graph_loss_divisor(model, NULL, 8), 8 * 6);
    models_free(model);
    model = models_new("[4]", "{'type': 'Linear', 'out_features': 3}",
                       "'loss': {'type': 'MSELoss', 'reduction': 'sum'},"
                       "'optimizer': {'type': 'SGD', 'lr': 1}");
    ck_assert_double_eq(graph_loss_divisor(model, NULL, 8), 1);
    models_free(model);
}
END_TEST

START_TEST(flops_count_multiplications_and_additions)
{
    struct model *model =
        models_new("[4, 8, 6]",
                   "{'type': 'Conv2d', 'out_channels': 6, 'kernel_size': 3, 'groups': 2},"
                   "{'type': 'Flatten'}, {'type': 'Linear', 'out_features': 10}",
                   NULL);
    const double conv = 2.0 * 5 * (6 * 6 * 4) * (2 * 3 * 3), linear = 2.0 * 5 * 144 * 10;
    struct graph *graph = build(model, (struct graph_options){.batch = 5, .n_replicas = 1});
    ck_assert_double_eq(graph_flops(graph), conv + linear);
    graph_free(graph);
    graph = build(model, (struct graph_options){.batch = 5, .training = true, .n_replicas = 1});
    ck_assert_double_eq(graph_flops(graph), 2 * conv + 3 * linear);
    graph_free(graph);
    models_free(model);
    model = models_new("[1, 8, 6]",
                       "{'type': 'Conv2d', 'out_channels': 4, 'kernel_size': 1},"
                       "{'type': 'Conv2d', 'out_channels': 6, 'kernel_size': 3},"
                       "{'type': 'Flatten'}",
                       NULL);
    const double first = 2.0 * 5 * (4 * 8 * 6), second = 2.0 * 5 * (6 * 6 * 4) * (4 * 3 * 3);
    graph = build(model, (struct graph_options){.batch = 5, .training = true, .n_replicas = 1});
    ck_assert_double_eq(graph_flops(graph), 2 * first + 3 * second);
    graph_free(graph);
    models_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *tcase = checks_case(suite, "graph", 0);
    tcase_add_test(tcase, mlp_training_computes_no_gradient_of_the_data);
    tcase_add_test(tcase, cnn_training_reduces_each_bucket_as_soon_as_it_is_made);
    tcase_add_test(tcase, cnn_evaluation_predicts_and_changes_nothing);
    tcase_add_test(tcase, batch_norm_without_running_statistics);
    tcase_add_test(tcase, resting_replica_keeps_the_order_of_collectives);
    tcase_add_test(tcase, gradients_of_a_fan_out_are_added);
    tcase_add_test(tcase, layer_that_nothing_reads_leaves_no_node);
    tcase_add_test(tcase, frozen_layers_and_clipped_gradients);
    tcase_add_test(tcase, batch_norm_of_one_value_a_channel_is_refused);
    tcase_add_test(tcase, host_reads_loss_and_in_an_evaluation_output_and_prediction);
    tcase_add_test(tcase, means_divide_by_what_pytorch_divides_by);
    tcase_add_test(tcase, flops_count_multiplications_and_additions);
    return checks_run(suite);
}
