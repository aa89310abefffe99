/* check_synchronized.c: BatchNorm over all replicas: its nodes, and whole jobs, which come out as
 * on one device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "engine/ops/registry.h"
#include "tests/engine/models.h"
#include "tests/engine/run_job.h"
#include "tests/lib/apart.h"
#include "tests/lib/checks.h"

#define SYNCHRONIZED                                                                               \
    "'loss': {'type': 'CrossEntropyLoss'}, 'optimizer': {'type': 'SGD', 'lr': 0.1},"               \
    "'parallel': {'mode': 'replicate', 'devices': 3, 'batch_norm': 'synchronized'}"

static char *dump(const char *layers, int64_t batch, enum step_part part)
{
    struct model *model = models_new("[4]", layers, SYNCHRONIZED);
    const struct graph_options options = {
        .batch = batch, .training = true, .part = part, .n_replicas = 3, .bucket_bytes = 1 << 20};
    struct graph *graph;
    struct err err = ERR_INIT;
    ck_assert_msg(graph_build(model, &op_registry, &options, &graph, &err) == 0, "%s", err.message);
    char *text = graph_dump(graph);
    graph_free(graph);
    models_free(model);
    return text;
}

static void ck_dump(const char *layers, int64_t batch, enum step_part part, const char *wanted)
{
    char *text = dump(layers, batch, part);
    ck_assert_str_eq(text, wanted);
    free(text);
}

static const char layers[] = "{'type': 'Linear', 'name': 'a', 'out_features': 3},"
                             "{'type': 'BatchNorm1d', 'name': 'bn', 'track_running_stats': false}";

START_TEST(nodes)
{
    ck_dump(layers, 1, STEP_WHOLE,
            "F a linear(input, a.weight, a.bias) -> %3 [1, 3]\n"
            "F bn batch_norm_statistics(%3) -> %6 [7]\n"
            "F bn gather_replicas(%6) -> %7 [3, 7]\n"
            "F bn batch_norm_combine(%7, -, -, -) -> %8 [3], %9 [3], %10 [1]\n"
            "F bn batch_norm_eval(%3, bn.weight, bn.bias, %8, %9) -> %11 [1, 3]\n"
            "F loss cross_entropy(%11, target) -> %13 [1], %14 [1, 3]\n"
            "I bn batch_norm_sums(%3, %14, %8, %9) -> %15 [2, 3], bn.weight.grad, bn.bias.grad\n"
            "I bn sum_replicas(%15) -> %18 [2, 3]\n"
            "I bn batch_norm_sums_grad(%3, %14, bn.weight, %8, %9, %18, %10) -> %19 [1, 3]\n"
            "W a linear_weight_grad(input, %19) -> a.weight.grad, a.bias.grad\n"
            "R gradients all_reduce(bn.weight.grad, a.bias.grad)\n"
            "U a.weight sgd(a.weight, a.weight.grad)\n"
            "U a.bias sgd(a.bias, a.bias.grad)\n"
            "U bn.weight sgd(bn.weight, bn.weight.grad)\n"
            "U bn.bias sgd(bn.bias, bn.bias.grad)\n");
}
END_TEST

START_TEST(nodes_at_rest)
{
    ck_dump(layers, 0, STEP_FIRST,
            "W gradients zero(bn.weight.grad, a.bias.grad)\n"
            "F bn gather_replicas(-) -> %7 [3, 7]\n"
            "I bn sum_replicas(-) -> %18 [2, 3]\n");
}
END_TEST

/* What the replicas told each other is there still when a segment is recomputed. */
START_TEST(nodes_recomputed)
{
    static const char *const again[] = {"linear", "batch_norm_eval", "relu"};
    struct job *job = run_job_parse(
        "{'train': {'checkpoint_activations': ['2']},"
        " 'parallel': {'mode': 'replicate', 'devices': 3, 'batch_norm': 'synchronized'}}");
    const struct graph_options options = {.batch = 2, .training = true, .n_replicas = 3};
    struct model *model;
    struct graph *graph;
    struct err err = ERR_INIT;
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), 0);
    ck_assert_int_eq(graph_build(model, &op_registry, &options, &graph, &err), 0);
    int recomputed = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = graph->nodes[i];
        bool known = node->phase != PHASE_RECOMPUTE;
        recomputed += !known;
        for (size_t k = 0; k < sizeof again / sizeof again[0]; k++)
            known |= strcmp(node->op->name, again[k]) == 0;
        ck_assert_msg(known, "%s is made a second time", node->op->name);
    }
    ck_assert_int_ge(recomputed, 1);
    graph_free(graph);
    model_free(model);
    job_free(job);
}
END_TEST

/* Whole jobs: the base has BatchNorm and Dropout, 40 samples in batches of 16. */

static const char *const jobs[] = {
    "{}",
    "{'train': {'batch_size': 12}}", /* a last batch of 4: on three devices one rests */
    "{'train': {'batch_size': 7}}",  /* chunks of one sample */
    "{'train': {'batch_size': 39, 'epochs': 1}, 'data': {'drop_last': true}}",
    "{'train': {'accumulate': 2, 'batch_size': 12}}",
    "{'train': {'checkpoint_activations': true}}",
    "{'train': {'checkpoint_activations': ['bn', '3'], 'clip_grad_norm': 0.5, 'batch_size': 12}}",
    "{'model': {'freeze': ['a']}}",
    "{'model': {'freeze': ['bn']}, 'optimizer': {'weight_decay': 0.01}}",
    "{'model': {'freeze': ['a', 'bn']}}",
};

struct place {
    char path[512];
};

static struct place place(int job, int devices)
{
    struct place place;
    snprintf(place.path, sizeof place.path, "%s/%d-on-%d", checks_scratch(), job, devices);
    return place;
}

static void run(int number, int devices, int64_t stop_after)
{
    static struct run_job result;
    char patch[512];
    snprintf(patch, sizeof patch,
             "%.*s%s'parallel': {'mode': 'replicate', 'devices': %d,"
             " 'batch_norm': 'synchronized'}}",
             (int)strlen(jobs[number]) - 1, jobs[number], strlen(jobs[number]) > 2 ? ", " : "",
             devices);
    run_job(patch, place(number, devices).path, devices, stop_after, &result);
    ck_assert_msg(result.rc == 0 || (stop_after > 0 && result.rc == ERR_CANCELLED), "%s: %s: %s",
                  patch, result.err.path, result.err.message);
}

static struct safetensors *weights(int number, int devices)
{
    char path[600];
    struct safetensors *file = NULL;
    struct err err = ERR_INIT;
    snprintf(path, sizeof path, "%s/weights.safetensors", place(number, devices).path);
    ck_assert_msg(safetensors_open(path, &file, &err) == 0, "%s", err.message);
    return file;
}

static void ck_close(int number, const struct safetensor *x, const struct safetensor *y)
{
    if (x->dtype != DTYPE_F32) {
        ck_assert_mem_eq(x->data, y->data, y->bytes);
        return;
    }
    struct apart apart = apart_floats(x->data, y->data, y->bytes / sizeof(float));
    ck_assert_msg(apart.worst <= 1e-6 * fmax(apart.largest, 1), "%s: %s: %g of %g", jobs[number],
                  x->name, apart.worst, apart.largest);
}

/* Also the running statistics. */
START_TEST(equals_one_device)
{
    run(_i, 1, 0);
    struct safetensors *one = weights(_i, 1);
    for (int devices = 2; devices <= 3; devices++) {
        run(_i, devices, 0);
        struct safetensors *many = weights(_i, devices);
        ck_assert_uint_eq(safetensors_count(one), safetensors_count(many));
        for (size_t i = 0; i < safetensors_count(one); i++)
            ck_close(_i, safetensors_at(many, i), safetensors_at(one, i));
        safetensors_close(many);
    }
    safetensors_close(one);
}
END_TEST

START_TEST(resumes_bit_for_bit)
{
    run(1, 3, 0);
    size_t size, size_again;
    char *whole = run_job_contents(place(1, 3).path, "weights.safetensors", &size);
    run(1, 3, 3); /* starts over: the job was at its end */
    run(1, 3, 0);
    char *again = run_job_contents(place(1, 3).path, "weights.safetensors", &size_again);
    ck_assert_uint_gt(size, 0);
    ck_assert(size == size_again && memcmp(whole, again, size) == 0);
    free(whole);
    free(again);
}
END_TEST

/* The one batch that leaves nothing to compare with. */
START_TEST(one_value_in_all_is_refused)
{
    static struct run_job result;
    run_job("{'train': {'batch_size': 13},"
            " 'parallel': {'mode': 'replicate', 'devices': 2, 'batch_norm': 'synchronized'}}",
            place(99, 2).path, 2, 0, &result);
    ck_assert_int_eq(result.rc, ERR_MODEL_SHAPE);
    ck_assert_str_eq(result.err.path, "/model/layers/1");
    ck_assert(strstr(result.err.message, "a chunk of 1 sample has one value a channel") != NULL);
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("synchronized");
    TCase *tcase = checks_case(suite, "synchronized", 60);
    tcase_add_test(tcase, nodes);
    tcase_add_test(tcase, nodes_at_rest);
    tcase_add_test(tcase, nodes_recomputed);
    tcase_add_loop_test(tcase, equals_one_device, 0, (int)(sizeof jobs / sizeof jobs[0]));
    tcase_add_test(tcase, resumes_bit_for_bit);
    tcase_add_test(tcase, one_value_in_all_is_refused);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
