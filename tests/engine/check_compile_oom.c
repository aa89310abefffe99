/* check_compile_oom.c: from a job to a plan with each allocation failed in turn: those of the heap,
 * and, since an arena asks the heap only now and then, each piece of an arena too. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/team.h"
#include "engine/ops/registry.h"
#include "engine/plan/plan.h"
#include "tests/engine/models.h"
#include "tests/engine/paper.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

void *__real_arena_alloc(struct arena *arena, size_t size);
void *__real_arena_array(struct arena *arena, size_t n, size_t size);
void *__real_arena_grow(struct arena *arena, void *items, size_t n, size_t *capacity, size_t size);
char *__wrap_arena_format(struct arena *arena, const char *format, ...);
void *__wrap_arena_alloc(struct arena *arena, size_t size);
void *__wrap_arena_array(struct arena *arena, size_t n, size_t size);
void *__wrap_arena_grow(struct arena *arena, void *items, size_t n, size_t *capacity, size_t size);

static long countdown; /* of pieces; 0: not armed */
static bool failed;

static bool fail_now(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    return failed = true;
}

void *__wrap_arena_alloc(struct arena *arena, size_t size)
{
    return fail_now() ? NULL : __real_arena_alloc(arena, size);
}

void *__wrap_arena_array(struct arena *arena, size_t n, size_t size)
{
    return fail_now() ? NULL : __real_arena_array(arena, n, size);
}

void *__wrap_arena_grow(struct arena *arena, void *items, size_t n, size_t *capacity, size_t size)
{
    return fail_now() ? NULL : __real_arena_grow(arena, items, n, capacity, size);
}

char *__wrap_arena_format(struct arena *arena, const char *format, ...)
{
    char text[512], *copy;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    copy = fail_now() ? NULL : __real_arena_alloc(arena, strlen(text) + 1);
    return copy == NULL ? NULL : strcpy(copy, text);
}

static int compile_graph(const struct backend *backend, const struct model *model,
                         const struct variable_map *map, const struct graph_options *options,
                         struct err *err)
{
    struct graph *graph = NULL;
    struct plan *plan = NULL;
    int rc = graph_build(model, &op_registry, options, &graph, err);
    if (rc == 0)
        rc = plan_build(backend, graph, map, CUT_NONE, &plan, err);
    plan_free(plan);
    graph_free(graph);
    return rc;
}

static int compile(const struct backend *backend, const struct job *job, struct err *err)
{
    static const struct graph_options options[] = {
        {.batch = 3, .training = true, .n_replicas = 2, .bucket_bytes = 64},
        {.batch = 0, .training = true, .n_replicas = 2, .bucket_bytes = 64},
        {.batch = 2},
    };
    struct model *model = NULL;
    struct variable_map map;
    int rc = model_build(job, &op_registry, &model, err);
    if (rc == 0)
        rc = variable_map_build(model, NULL, 0, model->arena, &map, err);
    for (size_t i = 0; rc == 0 && i < sizeof options / sizeof *options; i++)
        rc = compile_graph(backend, model, &map, &options[i], err);
    model_free(model);
    return rc;
}

static void arm_heap(long n)
{
    oom_arm(n);
}

static void arm_arena(long n)
{
    failed = false;
    countdown = n;
}

static bool disarm_arena(void)
{
    countdown = 0;
    return failed;
}

static void fail_each(const struct backend *backend, const struct job *job, void (*arm)(long n),
                      bool (*disarm)(void), long least)
{
    long n = 1;
    for (;; n++) {
        struct err err = ERR_INIT;
        arm(n);
        int rc = compile(backend, job, &err);
        if (!disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == ERR_NOMEM, "allocation %ld: %d %s", n, rc, err.message);
        ck_assert_int_eq(err.code, ERR_NOMEM);
    }
    ck_assert_int_gt(n, least); /* they were failed indeed */
}

START_TEST(cnn_for_the_cpu)
{
    struct job *job = models_job(models_cnn_input, models_cnn, NULL);
    team_set_size(1);
    fail_each(&backend_cpu, job, arm_heap, oom_disarm, 10);
    fail_each(&backend_cpu, job, arm_arena, disarm_arena, 500);
    job_free(job);
}
END_TEST

START_TEST(mlp_on_paper)
{
    struct job *job = models_job("[4]",
                                 "{'type': 'Linear', 'name': 'a', 'out_features': 4},"
                                 "{'type': 'ReLU', 'name': 'r'},"
                                 "{'type': 'Add', 'inputs': ['a', 'r', 'input']}",
                                 "'loss': {'type': 'MSELoss'},"
                                 "'optimizer': {'type': 'SGD', 'lr': 1, 'momentum': 0.9}");
    fail_each(&backend_paper, job, arm_heap, oom_disarm, 10);
    fail_each(&backend_paper, job, arm_arena, disarm_arena, 200);
    job_free(job);
}
END_TEST

START_TEST(spectral_norm_and_recorded_tensors)
{
    static char *record[] = {"a.output.grad", "a.weight_orig.grad", "2.output"};
    struct job *job =
        models_job("[4]",
                   "{'type': 'Linear', 'name': 'a', 'out_features': 4, 'spectral_norm': true},"
                   "{'type': 'ReLU', 'name': 'r'}, {'type': 'Linear', 'out_features': 2}",
                   "'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 1}");
    job->train.record = record;
    job->train.n_record = sizeof record / sizeof record[0];
    team_set_size(1);
    fail_each(&backend_cpu, job, arm_heap, oom_disarm, 10);
    fail_each(&backend_cpu, job, arm_arena, disarm_arena, 200);
    job->train.record = NULL; /* ours */
    job->train.n_record = 0;
    job_free(job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compile without memory");
    TCase *tcase = checks_case(suite, "oom", 120);
    tcase_add_test(tcase, cnn_for_the_cpu);
    tcase_add_test(tcase, mlp_on_paper);
    tcase_add_test(tcase, spectral_norm_and_recorded_tensors);
    return checks_run(suite);
}
