/* executor: a plan of one Linear layer on a real device, against the arithmetic by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/comm/comm.h"
#include "engine/exec/executor.h"
#include "engine/ops/registry.h"
#include "tests/engine/models.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

enum { SAMPLES = 2, IN = 3, OUT = 2 };

/* All that a run needs. */
struct bench {
    struct model *model;
    struct arena *arena;
    struct variable_map map;
    struct graph *graph;
    struct plan *plan;
    struct device *device;
    struct executor *executor;
    void *base[SPACE_COUNT];
    struct step step;
};

static struct bench bench_open(bool training, int n_replicas)
{
    struct bench b = {.step = {.seed = 1, .number = 1, .loss_divisor = SAMPLES * OUT, .lr = 0.1}};
    struct graph_options options = {
        .batch = SAMPLES, .training = training, .n_replicas = n_replicas, .bucket_bytes = 1 << 20};
    struct device_config config = {.name = "cpu:0", .n_threads = 1};
    struct err err = ERR_INIT;
    b.model = models_new("[3]", "{'type': 'Linear', 'out_features': 2}",
                         "'loss': {'type': 'MSELoss'},"
                         "'optimizer': {'type': 'SGD', 'lr': 0.1, 'momentum': 0.9}");
    b.arena = arena_new();
    ck_assert_int_eq(variable_map_build(b.model, NULL, 0, b.arena, &b.map, &err), 0);
    ck_assert_int_eq(graph_build(b.model, &op_registry, &options, &b.graph, &err), 0);
    ck_assert_msg(plan_build(&backend_cpu, b.graph, &b.map, CUT_NONE, &b.plan, &err) == 0, "%s",
                  err.message);
    ck_assert_int_eq(backend_cpu.device_open(&config, &b.device, &err), 0);
    ck_assert_msg(executor_new(b.device, b.plan, &b.executor, &err) == 0, "%s", err.message);
    b.base[SPACE_VARIABLES] = backend_cpu.alloc(b.device, b.map.bytes);
    b.base[SPACE_ARENA] = backend_cpu.alloc(b.device, b.plan->arena_bytes);
    b.base[SPACE_DATA] = malloc(SAMPLES * IN * sizeof(float));
    b.base[SPACE_TARGET] = malloc(SAMPLES * OUT * sizeof(float));
    models_fill(b.base[SPACE_DATA], SAMPLES * IN, 1);
    models_fill(b.base[SPACE_TARGET], SAMPLES * OUT, 2);
    return b;
}

static void bench_close(struct bench *b)
{
    free(b->base[SPACE_DATA]);
    free(b->base[SPACE_TARGET]);
    backend_cpu.free(b->device, b->base[SPACE_ARENA], b->plan->arena_bytes);
    backend_cpu.free(b->device, b->base[SPACE_VARIABLES], b->map.bytes);
    executor_free(b->executor);
    backend_cpu.device_close(b->device);
    plan_free(b->plan);
    graph_free(b->graph);
    arena_free(b->arena);
    models_free(b->model);
}

static int bench_run(struct bench *b, struct collective *collective, struct err *err)
{
    const struct run run = {.base = b->base, .step = &b->step, .collective = collective};
    return executor_run(b->executor, &run, err);
}

static float *variable(const struct bench *b, const char *name)
{
    int index = model_find(b->model, name);
    ck_assert_int_ge(index, 0);
    return (float *)((char *)b->base[SPACE_VARIABLES] + b->map.offset[index]);
}

static double loss(const struct bench *b)
{
    double value;
    memcpy(&value, (char *)b->base[b->plan->loss.space] + b->plan->loss.offset, sizeof value);
    return value;
}

static double loss_by_hand(const float *w, const float *bias, const float *x, const float *t)
{
    double sum = 0;
    for (int n = 0; n < SAMPLES; n++)
        for (int o = 0; o < OUT; o++) {
            double y = bias[o];
            for (int i = 0; i < IN; i++)
                y += (double)w[o * IN + i] * (double)x[n * IN + i];
            sum += (y - (double)t[n * OUT + o]) * (y - (double)t[n * OUT + o]);
        }
    return sum;
}

START_TEST(runs_every_step_and_learns)
{
    struct bench b = bench_open(true, 1);
    struct err err = ERR_INIT;
    float *w = variable(&b, "0.weight"), *bias = variable(&b, "0.bias");
    models_fill(w, OUT * IN, 3);
    models_fill(bias, OUT, 4);
    double before = INFINITY;
    for (int i = 0; i < 5; i++) {
        double wanted = loss_by_hand(w, bias, b.base[SPACE_DATA], b.base[SPACE_TARGET]);
        ck_assert_int_eq(bench_run(&b, NULL, &err), 0);
        ck_assert_double_eq_tol(loss(&b), wanted, 1e-5);
        ck_assert(wanted < before);
        before = wanted;
    }
    bench_close(&b);
}
END_TEST

START_TEST(a_run_allocates_nothing)
{
    struct bench b = bench_open(true, 1);
    struct err err = ERR_INIT;
    oom_arm(1);
    int rc = bench_run(&b, NULL, &err);
    bool allocated = oom_disarm();
    ck_assert(!allocated);
    ck_assert_int_eq(rc, 0);
    bench_close(&b);
}
END_TEST

START_TEST(a_failing_node_is_named)
{
    struct bench b = bench_open(true, 2);
    struct comm *comm;
    struct err err = ERR_INIT;
    ck_assert_int_eq(comm_new(2, &comm, &err), 0);
    comm_abort(comm);
    struct collective *collective = comm_collective(comm, 0);
    ck_assert_int_eq(bench_run(&b, collective, &err), ERR_CANCELLED);
    ck_assert_msg(strncmp(err.message, "all_reduce", 10) == 0, "%s", err.message);
    comm_free(comm);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor");
    TCase *tcase = checks_case(suite, "linear", 30);
    tcase_add_test(tcase, runs_every_step_and_learns);
    tcase_add_test(tcase, a_run_allocates_nothing);
    tcase_add_test(tcase, a_failing_node_is_named);
    return checks_run(suite);
}
