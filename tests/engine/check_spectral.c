/* check_spectral.c: spectral_norm: its nodes and variables; one power iteration a batch, whatever
 * the devices and the memory. (The numbers: tests/golden, "spectral"; stages and shards:
 * check_pieces.c.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "engine/graph/graph.h"
#include "engine/ops/registry.h"
#include "engine/train/init.h"
#include "engine/train/weights_file.h"
#include "tests/engine/models.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

static const char *const mse = "'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 1}";

static void check_dump(const char *layers, struct graph_options options, const char *want)
{
    struct model *model = models_new("[5]", layers, mse);
    struct err err = ERR_INIT;
    struct graph *graph = NULL;
    int rc = graph_build(model, &op_registry, &options, &graph, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    char *text = graph_dump(graph);
    ck_assert_str_eq(text, want);
    free(text);
    graph_free(graph);
    models_free(model);
}

static const char one[] =
    "{'type': 'Linear', 'name': 'a', 'out_features': 4, 'spectral_norm': true}";

START_TEST(training_iterates_once)
{
    check_dump(one, (struct graph_options){.batch = 6, .training = true, .n_replicas = 1},
               "F a power_iteration(a.weight_orig, a.weight_u, a.weight_v) -> %5 [4], %6 [5]\n"
               "F a spectral_norm(a.weight_orig, %5, %6) -> %7 [4, 5], %8 [1]\n"
               "F a linear(input, %7, a.bias) -> %9 [6, 4]\n"
               "F loss mse(%9, target) -> %11 [1], %12 [6, 4]\n"
               "W a linear_weight_grad(input, %12) -> %13 [4, 5], a.bias.grad\n"
               "W a spectral_norm_grad(%13, a.weight_orig, %5, %6, %8) -> a.weight_orig.grad\n"
               "U a.bias sgd(a.bias, a.bias.grad)\n"
               "U a.weight_orig sgd(a.weight_orig, a.weight_orig.grad)\n");
}
END_TEST

START_TEST(an_evaluation_takes_the_buffers_as_they_are)
{
    check_dump(one, (struct graph_options){.batch = 6, .n_replicas = 2},
               "F a spectral_norm(a.weight_orig, a.weight_u, a.weight_v) -> %5 [4, 5], %6 [1]\n"
               "F a linear(input, %5, a.bias) -> %7 [6, 4]\n"
               "F loss mse(%7, target) -> %9 [1]\n");
}
END_TEST

/* So that it has the controller's buffers when its turn comes again. */
START_TEST(a_replica_that_rests_iterates_too)
{
    check_dump(one, (struct graph_options){.training = true, .n_replicas = 2},
               "W gradients zero(a.bias.grad, a.weight_orig.grad)\n"
               "F a power_iteration(a.weight_orig, a.weight_u, a.weight_v) -> %5 [4], %6 [5]\n"
               "R gradients all_reduce_start(a.bias.grad, a.bias.grad)\n"
               "R gradients all_reduce(a.weight_orig.grad, a.weight_orig.grad)\n"
               "U a.bias sgd(a.bias, a.bias.grad)\n"
               "U a.weight_orig sgd(a.weight_orig, a.weight_orig.grad)\n");
}
END_TEST

static const char convolution[] =
    "{'type': 'Conv2d', 'name': 'c', 'out_channels': 4, 'kernel_size': [2, 3],"
    " 'spectral_norm': true}, {'type': 'Flatten'}";

/* As in a state_dict of torch.nn.utils.spectral_norm's; u and v begin with norm 1. */
START_TEST(variables_have_pytorchs_names_and_shapes)
{
    static const struct {
        const char *name;
        struct shape shape;
    } want[] = {{"c.bias", {1, {4}}},
                {"c.weight_orig", {4, {4, 3, 2, 3}}},
                {"c.weight_u", {1, {4}}},
                {"c.weight_v", {1, {18}}}};
    struct model *model = models_new("[3, 4, 4]", convolution, NULL);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const struct variable *variable = &model->variables[i];
        ck_assert_str_eq(variable->name, want[i].name);
        ck_assert(shape_equal(&variable->shape, &want[i].shape));
        ck_assert_int_eq(variable->kind, i < 2 ? VARIABLE_PARAMETER : VARIABLE_BUFFER);
        if (i < 2)
            continue;
        float elements[18], squares = 0;
        init_variable(variable, 3, elements);
        for (int64_t k = 0; k < shape_count(&variable->shape); k++)
            squares += elements[k] * elements[k];
        ck_assert_float_eq_tol(squares, 1, 1e-6f);
        ck_assert_float_ne(elements[0], elements[1]);
    }
    models_free(model);
}
END_TEST

/* Whole jobs. */

#define LAYERS                                                                                     \
    "'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 8, 'spectral_norm': true},"        \
    " {'type': 'Tanh', 'name': 't'}, {'type': 'Dropout', 'p': 0.2},"                               \
    " {'type': 'Linear', 'name': 'b', 'out_features': 3, 'spectral_norm': true}]"

static char *place(const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", checks_scratch(), name);
    return path;
}

static void compare(const char *ours, const char *wanted)
{
    char path[600];
    struct safetensors *a, *b;
    struct err err = ERR_INIT;
    snprintf(path, sizeof path, "%s/weights.safetensors", ours);
    ck_assert_int_eq(safetensors_open(path, &a, &err), 0);
    snprintf(path, sizeof path, "%s/weights.safetensors", wanted);
    ck_assert_int_eq(safetensors_open(path, &b, &err), 0);
    ck_assert_uint_eq(safetensors_count(a), 8);
    for (size_t i = 0; i < safetensors_count(a); i++) {
        const struct safetensor *x = safetensors_at(a, i), *y = safetensors_find(b, x->name);
        for (size_t k = 0; k < x->bytes / sizeof(float); k++)
            ck_assert_msg(fabsf(((const float *)x->data)[k] - ((const float *)y->data)[k]) <= 1e-5f,
                          "%s: element %zu differs", x->name, k);
    }
    safetensors_close(a);
    safetensors_close(b);
}

/* 40 samples in batches of 13: the epoch's last batch has one, and two of three devices rest. */
START_TEST(several_devices_train_as_one_does)
{
    static struct run_job run;
    static const char job[] = "{'model': {" LAYERS "}, 'train': {'batch_size': 13}}";
    run_job_well(job, place("one"), 1, &run);
    run_job_well(job, place("three"), 3, &run);
    compare(place("three"), place("one"));
}
END_TEST

START_TEST(recomputed_layers_iterate_once)
{
    static struct run_job run;
    run_job_well("{'model': {" LAYERS "}}", place("kept"), 2, &run);
    run_job_well("{'model': {" LAYERS "}, 'train': {'checkpoint_activations': ['a', 't']}}",
                 place("recomputed"), 2, &run);
    run_job_same_file(place("kept"), place("recomputed"), "weights.safetensors");
}
END_TEST

/* Validations leave u and v alone; a resume goes on with the same bits. */
START_TEST(validations_and_resumes_change_no_bit)
{
    static struct run_job run;
    run_job_well("{'model': {" LAYERS "}, 'train': {'validate_every': 'never'}}", place("whole"), 2,
                 &run);
    run_job("{'model': {" LAYERS "}, 'train': {'validate_every': '1 step'}}", place("parts"), 2, 3,
            &run);
    ck_assert_int_eq(run.rc, ERR_CANCELLED);
    run_job_well("{'model': {" LAYERS "}, 'train': {'validate_every': '1 step'}}", place("parts"),
                 2, &run);
    run_job_same_file(place("whole"), place("parts"), "weights.safetensors");
}
END_TEST

static void read_u(const char *output, float *ret_u)
{
    char path[600];
    struct safetensors *file;
    struct err err = ERR_INIT;
    snprintf(path, sizeof path, "%s/weights.safetensors", output);
    ck_assert_int_eq(safetensors_open(path, &file, &err), 0);
    memcpy(ret_u, safetensors_find(file, "a.weight_u")->data, 8 * sizeof(float));
    safetensors_close(file);
}

/* With a rate of 0 the weights stay: one step of two batches iterates as often as two steps. */
START_TEST(each_accumulated_batch_iterates)
{
    static struct run_job run;
    float once[8], twice[8], accumulated[8];
#define STILL(more)                                                                                \
    "{'model': {" LAYERS "}, 'optimizer': {'lr': 0}, 'train': {'epochs': 1, " more "}}"
    run_job_well(STILL("'batch_size': 20"), place("twice"), 2, &run);
    run_job_well(STILL("'batch_size': 20, 'accumulate': 2"), place("accumulated"), 2, &run);
    run_job_well(STILL("'batch_size': 40"), place("once"), 2, &run);
    read_u(place("once"), once);
    read_u(place("twice"), twice);
    read_u(place("accumulated"), accumulated);
    ck_assert_mem_eq(accumulated, twice, sizeof twice);
    ck_assert_mem_ne(accumulated, once, sizeof once);
}
END_TEST

START_TEST(a_frozen_layer_still_iterates)
{
    static struct run_job run;
    float begin[8], end[8];
    run_job_well("{'model': {" LAYERS ", 'freeze': ['a']}, 'train': {'epochs': 1}}",
                 place("frozen"), 1, &run);
    struct model *model = models_new(
        "[5]", "{'type': 'Linear', 'name': 'a', 'out_features': 8, 'spectral_norm': true}", mse);
    init_variable(&model->variables[2], 1, begin);
    read_u(place("frozen"), end);
    ck_assert_mem_ne(begin, end, sizeof end);
    models_free(model);
}
END_TEST

static void has(const char *path, const char *key)
{
    struct safetensors *file;
    struct err err = ERR_INIT;
    ck_assert_msg(safetensors_open(path, &file, &err) == 0, "%s", err.message);
    ck_assert_uint_eq(safetensors_count(file), 8);
    ck_assert_msg(safetensors_find(file, key) != NULL, "%s has no %s", path, key);
    safetensors_close(file);
}

/* The state_dict of a DataParallel of such layers has these keys; what comes back validates alike.
 */
START_TEST(files_go_to_data_parallel_and_back)
{
    static struct run_job run;
    struct err err = ERR_INIT;
    char weights[600], parallel[600], single[600], patch[2048];
    size_t n = 0;
    run_job_well("{'model': {" LAYERS "}}", place("kept"), 1, &run);
    double loss = run.done.validation_loss;
    snprintf(weights, sizeof weights, "%s/weights.safetensors", place("kept"));
    snprintf(parallel, sizeof parallel, "%s/parallel.safetensors", checks_scratch());
    snprintf(single, sizeof single, "%s/single.safetensors", checks_scratch());
    ck_assert_int_eq(weights_convert(weights, parallel, true, &n, &err), 0);
    ck_assert_uint_eq(n, 8);
    has(parallel, "module.a.weight_orig");
    has(parallel, "module.b.weight_u");
    ck_assert_int_eq(weights_convert(parallel, single, false, &n, &err), 0);
    has(single, "b.weight_v");
    snprintf(patch, sizeof patch,
             "{'model': {" LAYERS ", 'init': {'weights': '%s'}}, 'train': {'mode': 'evaluate'}}",
             single);
    run_job_well(patch, place("evaluated"), 1, &run);
    ck_assert_double_eq(run.done.validation_loss, loss);
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("spectral");
    TCase *tcase = checks_case(suite, "spectral_norm", 60);
    tcase_add_test(tcase, training_iterates_once);
    tcase_add_test(tcase, an_evaluation_takes_the_buffers_as_they_are);
    tcase_add_test(tcase, a_replica_that_rests_iterates_too);
    tcase_add_test(tcase, variables_have_pytorchs_names_and_shapes);
    tcase_add_test(tcase, several_devices_train_as_one_does);
    tcase_add_test(tcase, recomputed_layers_iterate_once);
    tcase_add_test(tcase, validations_and_resumes_change_no_bit);
    tcase_add_test(tcase, each_accumulated_batch_iterates);
    tcase_add_test(tcase, a_frozen_layer_still_iterates);
    tcase_add_test(tcase, files_go_to_data_parallel_and_back);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
