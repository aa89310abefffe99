/* check_bilstm.c: PyTorch's own test_data_parallel_rnn: a bidirectional LSTM 300 -> 1024 on
 * ones(4, 4, 300), SGD with a rate of 10: on several devices as on one, and as PyTorch
 * (generate_bilstm.py). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "tests/engine/idx_files.h"
#include "tests/engine/run_job.h"
#include "tests/golden/golden.h"
#include "tests/lib/checks.h"

enum { SAMPLES = 4, STEPS = 4, FEATURES = 300, OUTPUTS = 2048, GATES = 4 };

static json_t *golden;
static char inputs[512], targets[512];

/* A file of [4, 4, size] bytes of that value. */
static void write_data(const char *name, uint32_t size, int value, char *ret_path, size_t room)
{
    static uint8_t elements[SAMPLES * STEPS * OUTPUTS], file[sizeof elements + 16];
    const uint32_t dim[] = {SAMPLES, STEPS, size};
    memset(elements, value, sizeof elements);
    size_t bytes = idx_make(file, 0x08, 3, dim, elements, (size_t)SAMPLES * STEPS * size);
    snprintf(ret_path, room, "%s", idx_file(name, file, bytes));
}

static void write_all(void)
{
    write_data("bilstm-ones.idx", FEATURES, 1, inputs, sizeof inputs);
    write_data("bilstm-zeros.idx", OUTPUTS, 0, targets, sizeof targets);
}

/* `more`: keys of the layer. Returns the output directory. */
static const char *train(const char *name, int n_devices, const char *more)
{
    static struct run_job run;
    static char outputs[4][512];
    static int turn;
    char patch[3072], *output = outputs[turn++ % 4];
    snprintf(output, sizeof outputs[0], "%s/%s-%d", checks_scratch(), name, n_devices);
    snprintf(patch, sizeof patch,
             "{'model': {'input': {'shape': [4, 300]}, 'layers': [{'type': 'LSTM', 'name': 'rnn',"
             " 'hidden_size': 1024, 'bidirectional': true %s}]},"
             " 'data': {'train': {'format': 'idx', 'inputs': '%s', 'targets': '%s',"
             " 'samples': null, 'seed': null, 'classes': null}, 'validation': null,"
             " 'shuffle': false}, 'loss': {'type': 'MSELoss'},"
             " 'optimizer': {'lr': 10, 'momentum': 0}, 'checkpoint': {'every': 'never'},"
             " 'train': {'epochs': 1, 'batch_size': 4}}",
             more, inputs, targets);
    run_job_well(patch, output, n_devices, &run);
    return output;
}

static struct safetensors *open_weights(const char *output)
{
    char path[600];
    struct safetensors *file;
    struct err err = ERR_INIT;
    snprintf(path, sizeof path, "%s/weights.safetensors", output);
    ck_assert_msg(safetensors_open(path, &file, &err) == 0, "%s", err.message);
    return file;
}

/* There are millions of elements: the worst is asserted. All units of a gate begin alike and stay
 * so. */
static void compare_gate(const char *name, const float *elements, size_t n, double want)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        double apart = fabs((double)elements[i] - want);
        worst = apart > worst || isnan(apart) ? apart : worst;
    }
    ck_assert_msg(worst <= 2e-5 * fabs(want), "%s: %.9g apart from %.9g", name, worst, want);
}

static void compare_gates(const struct safetensor *tensor)
{
    const json_t *wanted = json_object_get(json_object_get(golden, "gates"), tensor->name);
    size_t n = tensor->bytes / sizeof(float) / GATES;
    ck_assert_uint_eq(json_array_size(wanted), GATES);
    for (size_t g = 0; g < GATES; g++)
        compare_gate(tensor->name, (const float *)tensor->data + g * n, n,
                     json_number_value(json_array_get(wanted, g)));
}

START_TEST(equals_pytorch)
{
    static const int devices[] = {1, 4};
    const char *output = train("constant", devices[_i],
                               ", 'weight_init': {'type': 'constant', 'val': 0.0005},"
                               " 'bias_init': {'type': 'constant', 'val': 0.05}");
    struct safetensors *file = open_weights(output);
    golden_metrics(output, golden, 1e-5);
    ck_assert_uint_eq(safetensors_count(file), 8);
    for (size_t i = 0; i < safetensors_count(file); i++)
        compare_gates(safetensors_at(file, i));
    safetensors_close(file);
}
END_TEST

/* torch.allclose, which PyTorch's test asks for. */
START_TEST(two_devices_equal_one)
{
    struct safetensors *one = open_weights(train("one", 1, ""));
    struct safetensors *two = open_weights(train("two", 2, ""));
    for (size_t i = 0; i < safetensors_count(one); i++) {
        const struct safetensor *b = safetensors_at(one, i), *a = safetensors_find(two, b->name);
        const float *x = a->data, *y = b->data;
        size_t n = b->bytes / sizeof(float), close = 0;
        for (size_t k = 0; k < n; k++)
            close += fabsf(x[k] - y[k]) <= 1e-8f + 1e-5f * fabsf(y[k]);
        ck_assert_msg(close == n, "%s: %zu of %zu elements are close", b->name, close, n);
    }
    safetensors_close(one);
    safetensors_close(two);
}
END_TEST

int main(void)
{
    golden = golden_cases("bilstm.json");
    if (golden == NULL)
        return EXIT_FAILURE;
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("bilstm");
    TCase *tcase = checks_case(suite, "data parallel", 120);
    tcase_add_checked_fixture(tcase, write_all, NULL);
    tcase_add_loop_test(tcase, equals_pytorch, 0, 2);
    tcase_add_test(tcase, two_devices_equal_one);
    int status = checks_run(suite);
    checks_scratch_remove();
    json_decref(golden);
    return status;
}
