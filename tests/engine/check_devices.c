/* check_devices.c: for models that hold every kind of layer: one device and several train alike,
 * and a job that is stopped and resumed ends in the same bits.
 *
 * In bf16 (low.h) the sums of a product go by another order in a chunk of another size, and what a
 * bit of a float turns is then a step of BF16. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "tests/engine/low.h"
#include "tests/engine/run_job.h"
#include "tests/lib/apart.h"
#include "tests/lib/checks.h"

static const char *const models[] = {
    "'input': {'shape': [6]}, 'layers': ["
    "{'type': 'Linear', 'out_features': 8}, {'type': 'GELU'},"
    "{'type': 'Linear', 'out_features': 8}, {'type': 'GELU', 'approximate': 'tanh'},"
    "{'type': 'Linear', 'out_features': 8}, {'type': 'SiLU', 'name': 'silu'},"
    "{'type': 'Sigmoid', 'name': 'gate'}, {'type': 'Tanh', 'name': 'tanh', 'inputs': ['silu']},"
    "{'type': 'Mul', 'inputs': ['gate', 'tanh', 'silu']}, {'type': 'LayerNorm'},"
    "{'type': 'Linear', 'out_features': 3}, {'type': 'LogSoftmax', 'dim': 1}]",
    "'input': {'shape': [2, 6, 6]}, 'layers': ["
    "{'type': 'Conv2d', 'name': 'a', 'out_channels': 16, 'kernel_size': 3},"
    "{'type': 'AvgPool2d', 'name': 'b', 'kernel_size': 2},"
    "{'type': 'Conv2d', 'name': 'c', 'out_channels': 16, 'kernel_size': 3, 'inputs': ['b'],"
    " 'padding': 1},"
    "{'type': 'Cat', 'dim': 1, 'inputs': ['b', 'c']}, {'type': 'Softmax', 'dim': 1},"
    "{'type': 'Reshape', 'shape': [-1, 32]}, {'type': 'LayerNorm', 'normalized_shape': [4, 32]},"
    "{'type': 'Flatten'}, {'type': 'Linear', 'out_features': 3}]",
    "'input': {'shape': [5], 'dtype': 'int64'}, 'layers': ["
    "{'type': 'Embedding', 'num_embeddings': 7, 'embedding_dim': 6, 'padding_idx': -1},"
    "{'type': 'PositionalEmbedding', 'num_embeddings': 8}, {'type': 'LayerNorm'},"
    "{'type': 'SelectLast'}, {'type': 'Linear', 'out_features': 3}]",
    "'input': {'shape': [5], 'dtype': 'int64'}, 'layers': ["
    "{'type': 'Embedding', 'name': 'x', 'num_embeddings': 7, 'embedding_dim': 6},"
    "{'type': 'LayerNorm', 'name': 'frozen'},"
    "{'type': 'SelfAttention', 'name': 'a', 'num_heads': 2, 'causal': true, 'dropout': 0.2},"
    "{'type': 'Add', 'name': 'y', 'inputs': ['x', 'a']},"
    "{'type': 'SelfAttention', 'num_heads': 3, 'bias': false}, {'type': 'SelectLast'},"
    "{'type': 'Linear', 'out_features': 3}], 'freeze': ['frozen']",
    "'input': {'shape': [5, 4]}, 'layers': ["
    "{'type': 'Linear', 'name': 'front', 'out_features': 6},"
    "{'type': 'LSTM', 'name': 'lstm', 'hidden_size': 5, 'num_layers': 3, 'dropout': 0.3,"
    " 'bidirectional': true},"
    "{'type': 'GRU', 'name': 'gru', 'hidden_size': 3, 'num_layers': 2, 'dropout': 0.2,"
    " 'inputs': ['front']},"
    "{'type': 'RNN', 'name': 'rnn', 'hidden_size': 4, 'nonlinearity': 'relu', 'inputs': ['front']},"
    "{'type': 'Cat', 'dim': 2, 'inputs': ['lstm', 'gru', 'rnn']}, {'type': 'SelectLast'},"
    "{'type': 'Linear', 'out_features': 3}]",
};
enum { N_MODELS = sizeof models / sizeof models[0] };

static const char *patch(int model)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "{'model': {%s}, 'train': {'epochs': 1, 'batch_size': 13, 'precision': '%s'}}",
             models[model], low_on ? "bf16" : "fp32");
    return text;
}

static const char *place(int model, const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%d-%s", checks_scratch(), model, name);
    return path;
}

static struct safetensors *open_weights(const char *output)
{
    char path[1024];
    struct safetensors *file;
    struct err err = ERR_INIT;
    snprintf(path, sizeof path, "%s/weights.safetensors", output);
    ck_assert_msg(safetensors_open(path, &file, &err) == 0, "%s", err.message);
    return file;
}

/* Every tensor's max|a-b| / max|b| is at most `tolerance`. */
static void compare(const char *ours, const char *wanted, double tolerance)
{
    struct safetensors *a = open_weights(ours), *b = open_weights(wanted);
    ck_assert_uint_eq(safetensors_count(a), safetensors_count(b));
    for (size_t i = 0; i < safetensors_count(b); i++) {
        const struct safetensor *y = safetensors_at(b, i), *x = safetensors_find(a, y->name);
        ck_assert_msg(x != NULL && y->dtype == DTYPE_F32, "%s", y->name);
        struct apart apart = apart_floats(x->data, y->data, y->bytes / sizeof(float));
        ck_assert_msg(apart.worst <= tolerance * apart.largest,
                      "%s: differs by %.3g of at most %.3g", y->name, apart.worst, apart.largest);
    }
    safetensors_close(a);
    safetensors_close(b);
}

START_TEST(several_devices_train_as_one_does)
{
    static struct run_job one, several;
    run_job_well(patch(_i), place(_i, "1"), 1, &one);
    for (int n = 2; n <= 3; n++) {
        const char *output = place(_i, n == 2 ? "2" : "3");
        run_job_well(patch(_i), output, n, &several);
        ck_assert_msg(fabs(several.progress.loss - one.progress.loss) <=
                          (low_on ? 1e-3 : 1e-6) * one.progress.loss,
                      "%d devices: %.9g, one: %.9g", n, several.progress.loss, one.progress.loss);
        compare(output, place(_i, "1"), low_on ? 1e-2 : 1e-5);
    }
}
END_TEST

START_TEST(a_resumed_job_ends_in_the_same_bits)
{
    static struct run_job whole, stopped, resumed;
    run_job_well(patch(_i), place(_i, "whole"), 2, &whole);
    run_job(patch(_i), place(_i, "parts"), 2, 3, &stopped);
    ck_assert_int_eq(stopped.rc, ERR_CANCELLED);
    run_job_well(patch(_i), place(_i, "parts"), 2, &resumed);
    compare(place(_i, "parts"), place(_i, "whole"), 0);
}
END_TEST

int main(void)
{
    static const char *const names[] = {"several_devices_train_as_one_does",
                                        "a_resumed_job_ends_in_the_same_bits"};
    if (low_missing() != NULL)
        return checks_skip(names, 2, low_missing());
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("devices");
    TCase *tcase = checks_case(suite, "layers", 60);
    tcase_add_loop_test(tcase, several_devices_train_as_one_does, 0, N_MODELS);
    tcase_add_loop_test(tcase, a_resumed_job_ends_in_the_same_bits, 0, N_MODELS);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
