/* strategy by replicas: whatever the number of devices and however unequal the chunks, a step is
 * the single device's. Devices share the machine's cores, one thread each. */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/registry.h"
#include "engine/parallel/strategy.h"
#include "engine/train/init.h"
#include "tests/engine/models.h"
#include "tests/lib/apart.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

enum { IN = 6, CLASSES = 3, MAX_BATCH = 13, MAX_DEVICES = 3, STEPS = 4 };

static const char mlp[] = "{'type': 'Linear', 'out_features': 16}, {'type': 'ReLU'},"
                          "{'type': 'Dropout', 'p': 0.4}, {'type': 'Linear', 'out_features': 3}";
static const char normed[] =
    "{'type': 'Linear', 'out_features': 16}, {'type': 'BatchNorm1d', 'name': 'bn'},"
    "{'type': 'ReLU'}, {'type': 'Linear', 'out_features': 3}";

static const struct device_config devices[] = {
    {.name = "cpu:0", .n_threads = 1},
    {.name = "cpu:1", .n_threads = 1},
    {.name = "cpu:2", .n_threads = 1},
};

struct bench {
    struct model *model;
    struct strategy *strategy;
    int64_t n;
    float data[MAX_BATCH * IN];
    int64_t targets[MAX_BATCH];
};

static struct strategy_config config_of(const struct model *model, int n_devices, const int64_t *n)
{
    static struct strategy_batch batch;
    batch = (struct strategy_batch){.n = *n};
    return (struct strategy_config){
        .backend = &backend_cpu,
        .model = model,
        .devices = devices,
        .n_devices = n_devices,
        .train_batches = &batch,
        .n_train_batches = 1,
        .eval_batches = n,
        .n_eval_batches = 1,
    };
}

static void bench_open(struct bench *b, const char *layers, int n_devices, int64_t n)
{
    struct err err = ERR_INIT;
    *b = (struct bench){.n = n};
    b->model = models_new("[6]", layers, NULL);
    models_fill(b->data, sizeof b->data / sizeof b->data[0], 7);
    for (int i = 0; i < MAX_BATCH; i++)
        b->targets[i] = i * i % CLASSES;
    struct strategy_config config = config_of(b->model, n_devices, &b->n);
    ck_assert_msg(strategy_open(&config, &b->strategy, &err) == 0, "%s", err.message);
    ck_assert_msg(init_all(b->strategy, b->model, &err) == 0, "%s", err.message);
}

static void bench_close(struct bench *b)
{
    strategy_close(b->strategy);
    models_free(b->model);
}

static struct strategy_result run(struct bench *b, int64_t number, bool training)
{
    struct strategy_result result;
    struct err err = ERR_INIT;
    struct batch batch = {b->n, {b->data}, b->targets};
    struct step step = {
        .seed = 1,
        .number = number,
        .first_sample = 26,
        .loss_divisor = graph_loss_divisor(b->model, b->targets, b->n),
        .lr = 0.1,
    };
    int rc = training ? strategy_train(b->strategy, &batch, STEP_WHOLE, &step, &result, &err)
                      : strategy_evaluate(b->strategy, &batch, &step, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    return result;
}

/* A variable's elements, to be freed. */
static void *read_variable(const struct bench *b, size_t i, size_t *ret_bytes)
{
    const struct variable *v = &b->model->variables[i];
    struct err err = ERR_INIT;
    *ret_bytes = (size_t)shape_count(&v->shape) * dtype_size(v->dtype);
    void *elements = malloc(*ret_bytes);
    ck_assert_int_eq(strategy_read(b->strategy, (int)i, elements, &err), 0);
    return elements;
}

static void compare_parameters(const struct bench *a, const struct bench *b)
{
    for (size_t i = 0; i < a->model->n_variables; i++) {
        const struct variable *v = &a->model->variables[i];
        if (v->kind != VARIABLE_PARAMETER)
            continue;
        size_t bytes;
        float *x = read_variable(a, i, &bytes), *y = read_variable(b, i, &bytes);
        struct apart apart = apart_floats(x, y, bytes / sizeof *x);
        ck_assert_msg(apart.worst <= 1e-6 * apart.largest, "%s: differs by %g of %g", v->name,
                      apart.worst, apart.largest);
        free(x);
        free(y);
    }
}

static const struct {
    int64_t batch;
    int devices;
    int64_t chunks[MAX_DEVICES];
} spreads[] = {
    {10, 2, {5, 5}}, {10, 3, {4, 4, 2}}, {13, 2, {7, 6}}, {13, 3, {5, 5, 3}},
    {7, 2, {4, 3}},  {7, 3, {3, 3, 1}},  {1, 2, {1, 0}},  {1, 3, {1, 0, 0}},
};

START_TEST(equals_one_device)
{
    struct bench one, many;
    int n_devices = spreads[_i].devices;
    bench_open(&one, mlp, 1, spreads[_i].batch);
    bench_open(&many, mlp, n_devices, spreads[_i].batch);
    for (int64_t number = 1; number <= STEPS; number++) {
        struct strategy_result a = run(&one, number, true), b = run(&many, number, true);
        double sum = 0;
        for (int r = 0; r < n_devices; r++) {
            ck_assert_int_eq(b.replicas[r].samples, spreads[_i].chunks[r]);
            sum += b.replicas[r].loss_sum;
        }
        ck_assert_double_eq_tol(b.loss, a.loss, 1e-6 * a.loss);
        ck_assert_double_eq_tol(sum, b.loss * (double)spreads[_i].batch, 1e-12);
    }
    compare_parameters(&many, &one);

    struct strategy_result a = run(&one, STEPS, false), b = run(&many, STEPS, false);
    ck_assert_double_eq_tol(b.loss, a.loss, 1e-6 * a.loss);
    ck_assert_mem_eq(a.predictions, b.predictions, (size_t)one.n * sizeof a.predictions[0]);
    bench_close(&one);
    bench_close(&many);
}
END_TEST

/* After a training step the replicas' running statistics differ; an evaluation uses the
 * controller's everywhere, as a single device that is given them does. */
START_TEST(evaluates_with_the_controllers_buffers)
{
    struct bench one, many;
    struct err err = ERR_INIT;
    bench_open(&one, normed, 1, MAX_BATCH);
    bench_open(&many, normed, 2, MAX_BATCH);
    run(&many, 1, true);
    for (size_t i = 0; i < one.model->n_variables; i++) {
        size_t bytes;
        void *elements = read_variable(&many, i, &bytes);
        ck_assert_int_eq(strategy_write(one.strategy, (int)i, elements, &err), 0);
        free(elements);
    }
    struct strategy_result a = run(&one, 2, false), b = run(&many, 2, false);
    ck_assert_double_eq_tol(b.loss, a.loss, 1e-6 * a.loss);
    bench_close(&one);
    bench_close(&many);
}
END_TEST

START_TEST(plans_each_device)
{
    struct model *model = models_new("[6]", mlp, NULL);
    struct strategy_memory memory[MAX_DEVICES];
    struct err err = ERR_INIT;
    double flops;
    const int64_t batch = 10;
    struct strategy_config config = config_of(model, 3, &batch);
    ck_assert_int_eq(strategy_plan(&config, memory, &flops, &err), 0);
    ck_assert_double_gt(flops, 0);
    const int64_t chunks[] = {4, 4, 2};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(memory[i].samples, chunks[i]);
        ck_assert_uint_eq(memory[i].input_bytes,
                          (size_t)chunks[i] * (IN * sizeof(float) + sizeof(int64_t)));
        ck_assert_uint_eq(memory[i].variable_bytes, memory[0].variable_bytes);
        ck_assert_uint_gt(memory[i].arena_bytes, 0);
    }
    models_free(model);
}
END_TEST

/* One device: its thread and ours never allocate at the same time. */
static int plan_and_open(const struct strategy_config *config, struct err *err)
{
    struct strategy_memory memory[1];
    struct strategy *strategy = NULL;
    double flops;
    int rc = strategy_plan(config, memory, &flops, err);
    if (rc == 0)
        rc = strategy_open(config, &strategy, err);
    strategy_close(strategy);
    return rc;
}

/* Replicas; a stage. */
static const char *const members[] = {
    NULL,
    "'loss': {'type': 'CrossEntropyLoss'}, 'optimizer': {'type': 'SGD', 'lr': 0.1},"
    "'parallel': {'mode': 'stages', 'split_size': 4, 'stages': [{'begin': '0', 'devices': "
    "['cpu:0']}]}",
};

START_TEST(every_allocation_is_checked)
{
    struct model *model = models_new("[6]", mlp, members[_i]);
    const int64_t batch = 10;
    struct strategy_config config = config_of(model, 1, &batch);
    bool failed = true;
    for (long n = 1; failed; n++) {
        struct err err = ERR_INIT;
        oom_arm(n);
        int rc = plan_and_open(&config, &err);
        failed = oom_disarm();
        ck_assert_msg(rc == (failed ? ERR_NOMEM : 0), "allocation %ld: %s", n, err.message);
    }
    models_free(model);
}
END_TEST

START_TEST(a_failing_device_is_named)
{
    struct model *model = models_new("[6]", mlp, NULL);
    const int no_such_core = 1 << 16;
    struct device_config broken[] = {devices[0], devices[1]};
    broken[1].cores = &no_such_core;
    broken[1].n_cores = 1;
    struct err err = ERR_INIT;
    struct strategy *strategy;
    const int64_t batch = 10;
    struct strategy_config config = config_of(model, 2, &batch);
    config.devices = broken;
    ck_assert_int_ne(strategy_open(&config, &strategy, &err), 0);
    ck_assert_msg(strncmp(err.message, "replica 1 on cpu:1: ", 20) == 0, "%s", err.message);
    models_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("strategy");
    TCase *tcase = checks_case(suite, "replicate", 60);
    tcase_add_loop_test(tcase, equals_one_device, 0, (int)(sizeof spreads / sizeof spreads[0]));
    tcase_add_test(tcase, evaluates_with_the_controllers_buffers);
    tcase_add_test(tcase, plans_each_device);
    tcase_add_loop_test(tcase, every_allocation_is_checked, 0, 2);
    tcase_add_test(tcase, a_failing_device_is_named);
    return checks_run(suite);
}
