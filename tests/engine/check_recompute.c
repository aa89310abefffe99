/* Activation checkpointing: where it cuts, what it makes of a graph, and that it changes memory but
 * not one bit of a step. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/segments.h"
#include "engine/ops/registry.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

enum { MOST = 8 };

static const struct {
    size_t n;
    struct segment_layer layers[MOST];
    const char *ends; /* '|' behind a layer that ends a segment */
} cuts[] = {
    {1, {{100, 100, false}}, "."},
    /* Equal layers: about sqrt(n) segments; 8 in all would be kept without any cut. */
    {4, {{2, 1, false}, {2, 1, false}, {2, 1, false}, {2, 1, false}}, "..|.."},
    /* A cut in the middle of a block would keep two values. */
    {6,
     {{3, 2, false}, {3, 9, false}, {3, 2, false}, {3, 9, false}, {3, 2, false}, {3, 9, false}},
     "...|..."},
    /* Cuts that keep more than they save are not made. */
    {3, {{1, 50, false}, {1, 50, false}, {1, 50, false}}, "..."},
};

START_TEST(cuts_where_it_is_cheapest)
{
    struct segment_layer layers[MOST];
    struct err err = ERR_INIT;
    char got[2 * MOST + 1] = "";
    memcpy(layers, cuts[_i].layers, sizeof layers);
    ck_assert_int_eq(segments_choose(layers, cuts[_i].n, &err), 0);
    for (size_t i = 0; i < cuts[_i].n; i++)
        strcat(got, layers[i].end ? ".|" : ".");
    ck_assert_str_eq(got, cuts[_i].ends);
}
END_TEST

/* What every way of cutting costs, by brute force. */
static int64_t cost_of(const struct segment_layer *layers, size_t n, unsigned ends)
{
    int64_t kept = 0, segment = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        segment += layers[i].inner_bytes;
        largest = segment > largest ? segment : largest;
        if (ends >> i & 1) {
            kept += layers[i].cross_bytes;
            segment = 0;
        }
    }
    return kept + largest;
}

START_TEST(cuts_no_worse_than_any_other)
{
    struct segment_layer layers[MOST];
    struct err err = ERR_INIT;
    unsigned chosen = 0, seed = (unsigned)_i * 2654435761u;
    int64_t best = INT64_MAX;
    for (size_t i = 0; i < MOST; i++) {
        seed = seed * 1664525u + 1013904223u;
        layers[i] = (struct segment_layer){1 + (seed >> 16) % 9, 1 + (seed >> 24) % 5, false};
    }
    ck_assert_int_eq(segments_choose(layers, MOST, &err), 0);
    for (size_t i = 0; i < MOST; i++)
        chosen |= (unsigned)layers[i].end << i;
    for (unsigned ends = 0; ends < 1u << (MOST - 1); ends++) {
        int64_t cost = cost_of(layers, MOST, ends);
        best = cost < best ? cost : best;
    }
    ck_assert_int_eq(cost_of(layers, MOST, chosen), best);
}
END_TEST

static const char layers[] =
    "[{'type': 'Linear', 'name': 'a', 'out_features': 3}, {'type': 'BatchNorm1d', 'name': 'bn'},"
    " {'type': 'ReLU', 'name': 'r'}, {'type': 'Linear', 'name': 'b', 'out_features': 2},"
    " {'type': 'ReLU', 'name': 's'}, {'type': 'Linear', 'name': 'c', 'out_features': 2}]";

/* The second time BatchNorm has no running statistics to update. The ReLU's output is kept, since b
 * reads it; a's output and bn's statistics are made again. */
static const char recomputed[] =
    "F a linear(input, a.weight, a.bias) -> %3 [4, 3]\n"
    "F bn batch_norm_relu(%3, bn.weight, bn.bias, bn.running_mean, bn.running_var, "
    "bn.num_batches_tracked) -> %11 [4, 3], %9 [3], %10 [3]\n";

static char *dump(const char *asked)
{
    static const struct graph_options options = {.batch = 4, .training = true, .n_replicas = 1};
    struct model *model;
    struct graph *graph;
    struct err err = ERR_INIT;
    char patch[1024];
    snprintf(patch, sizeof patch,
             "{'model': {'input': {'shape': [2]}, 'layers': %s},"
             " 'train': {'checkpoint_activations': %s}}",
             layers, asked);
    struct job *job = run_job_parse(patch);
    ck_assert_int_eq(model_build(job, &op_registry, &model, &err), 0);
    ck_assert_msg(graph_build(model, &op_registry, &options, &graph, &err) == 0, "%s", err.message);
    char *text = graph_dump(graph);
    graph_free(graph);
    model_free(model);
    job_free(job);
    return text;
}

static size_t count(const char *text, const char *start)
{
    size_t n = 0;
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
        n += strncmp(line, start, strlen(start)) == 0;
    return n;
}

START_TEST(recomputes_a_segment_without_side_effects)
{
    char *text = dump("['r']");
    ck_assert_msg(strncmp(text, recomputed, strlen(recomputed)) == 0, "%s", text);
    ck_assert_uint_eq(count(text, "C a linear(input, a.weight, a.bias)"), 1);
    ck_assert_ptr_nonnull(strstr(text, "bn.bias, -, -, -)"));
    ck_assert_uint_eq(count(text, "C bn batch_norm_relu("), 1);
    ck_assert_uint_eq(count(text, "C "), 2); /* r is kept; behind it nothing is made again */
    free(text);
}
END_TEST

START_TEST(a_cut_behind_the_last_layer_recomputes_all)
{
    char *text = dump("['c']");
    ck_assert_uint_eq(count(text, "C a "), 1);
    ck_assert_uint_eq(count(text, "C s "), 1);
    ck_assert_uint_eq(count(text, "C c "), 0); /* the loss reads the kept one */
    free(text);
}
END_TEST

START_TEST(nothing_asked_nothing_recomputed)
{
    char *text = dump("false");
    ck_assert_uint_eq(count(text, "C "), 0);
    free(text);
}
END_TEST

/* BatchNorm and Dropout are in the base job: statistics once a step, the same masks. */
START_TEST(changes_no_bit)
{
    static const char *const patches[] = {
        "{'train': {'checkpoint_activations': true}}",
        "{'train': {'checkpoint_activations': ['2']}}",
        "{'train': {'checkpoint_activations': ['bn', '3']}}",
    };
    char plain[64], other[64];
    struct run_job *run = calloc(1, sizeof *run);
    snprintf(plain, sizeof plain, "%s/plain", checks_scratch());
    snprintf(other, sizeof other, "%s/other", checks_scratch());
    run_job_well("{}", plain, 1 + _i % 2, run);
    run_job_well(patches[_i], other, 1 + _i % 2, run);
    run_job_same_file(plain, other, "weights.safetensors");
    checks_scratch_remove();
    free(run);
}
END_TEST

#define RESIDUAL(checkpoint)                                                                       \
    "{'model': {'input': {'shape': [5]}, 'layers': ["                                              \
    "{'type': 'Linear', 'out_features': 6}, {'type': 'ReLU', 'name': 'r'},"                        \
    "{'type': 'Linear', 'out_features': 6}, {'type': 'Dropout'},"                                  \
    "{'type': 'Add', 'name': 'sum', 'inputs': ['3', 'r']}, {'type': 'Linear',"                     \
    " 'out_features': 3}]}, 'train': {'checkpoint_activations': " checkpoint "}}"

/* The sum is kept and not made again; what it added is made again, and read by others. */
START_TEST(gradients_of_kept_and_recomputed_readers_meet)
{
    char plain[64], other[64];
    struct run_job *run = calloc(1, sizeof *run);
    snprintf(plain, sizeof plain, "%s/plain", checks_scratch());
    snprintf(other, sizeof other, "%s/other", checks_scratch());
    run_job_well(RESIDUAL("false"), plain, 1, run);
    run_job_well(RESIDUAL("['sum']"), other, 1, run);
    run_job_same_file(plain, other, "weights.safetensors");
    checks_scratch_remove();
    free(run);
}
END_TEST

static size_t arena_bytes(const char *patch)
{
    struct job *job = run_job_parse(patch);
    struct trainer_config config = run_job_config(job, 1, "unused");
    struct trainer_plan plan;
    struct err err = ERR_INIT;
    ck_assert_msg(trainer_plan(&config, &plan, &err) == 0, "%s", err.message);
    size_t bytes = plan.devices[0].arena_bytes;
    trainer_plan_done(&plan);
    job_free(job);
    return bytes;
}

#define BLOCK "{'type': 'Linear', 'out_features': 64}, {'type': 'ReLU'}, "
#define BLOCKS BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK
#define DEEP(checkpoint)                                                                           \
    "{'model': {'input': {'shape': [8]}, 'layers': [" BLOCKS BLOCKS BLOCKS BLOCKS                  \
    "{'type': 'Linear', 'out_features': 3}]},"                                                     \
    " 'data': {'train': {'samples': 256}},"                                                        \
    " 'train': {'batch_size': 256, 'checkpoint_activations': " checkpoint "}}"

START_TEST(halves_the_activations)
{
    size_t plain = arena_bytes(DEEP("false")), checkpointed = arena_bytes(DEEP("true"));
    ck_assert_msg(checkpointed * 2 <= plain, "%zu of %zu bytes", checkpointed, plain);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recompute");
    TCase *tcase = checks_case(suite, "recompute", 60);
    tcase_add_loop_test(tcase, cuts_where_it_is_cheapest, 0, sizeof cuts / sizeof cuts[0]);
    tcase_add_loop_test(tcase, cuts_no_worse_than_any_other, 0, 50);
    tcase_add_test(tcase, recomputes_a_segment_without_side_effects);
    tcase_add_test(tcase, a_cut_behind_the_last_layer_recomputes_all);
    tcase_add_test(tcase, nothing_asked_nothing_recomputed);
    tcase_add_loop_test(tcase, changes_no_bit, 0, 3);
    tcase_add_test(tcase, gradients_of_kept_and_recomputed_readers_meet);
    tcase_add_test(tcase, halves_the_activations);
    return checks_run(suite);
}
