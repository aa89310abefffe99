/* The balance of stages, by value and against every split there is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parallel/balance.h"
#include "engine/parallel/timetable.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

enum { MOST_LAYERS = 9, MOST_STAGES = 5, SEEDS = 2000 };

static int find(const struct balance_config *config, struct balance *balance, struct err *err)
{
    *err = (struct err)ERR_INIT;
    return balance_find(config, balance, err);
}

START_TEST(the_largest_stage_is_smallest)
{
    const struct balance_layer layers[] = {
        {.name = "a", .forward = 1, .backward = 1, .weight = 1},
        {.name = "b", .forward = 4, .cut = true},
        {.name = "c", .forward = 1, .backward = 1, .cut = true},
        {.name = "d", .weight = 6, .cut = true},
        {.name = "e", .forward = 2, .cut = true},
    };
    struct balance_config config = {.layers = layers, .n_layers = 5, .stages = 2};
    struct balance balance;
    struct err err;
    ck_assert_int_eq(find(&config, &balance, &err), 0);
    ck_assert_uint_eq(balance.first[1], 3);
    ck_assert_double_eq(balance.seconds[0], 9);
    ck_assert_double_eq(balance.seconds[1], 8);
    ck_assert_double_eq(balance.bottleneck, 9);
}
END_TEST

/* 6 is the bottleneck wherever the rest is cut: 3 and 3 is more even than 5 and 1. */
START_TEST(of_equal_ones_the_most_even)
{
    const struct balance_layer layers[] = {
        {.name = "a", .forward = 1},
        {.name = "b", .forward = 2, .cut = true},
        {.name = "c", .forward = 2, .cut = true},
        {.name = "d", .forward = 1, .cut = true},
        {.name = "e", .forward = 6, .cut = true},
    };
    struct balance_config config = {.layers = layers, .n_layers = 5, .stages = 3};
    struct balance balance;
    struct err err;
    ck_assert_int_eq(find(&config, &balance, &err), 0);
    ck_assert_uint_eq(balance.first[1], 2);
    ck_assert_uint_eq(balance.first[2], 4);
    ck_assert_double_eq(balance.bottleneck, 6);
}
END_TEST

/* Alone the even split would be first; but 1F1B's first stage holds two micro-batches. */
START_TEST(memory_moves_the_cut)
{
    const struct balance_layer layers[] = {
        {.name = "a", .forward = 1, .slot_bytes = 10, .fixed_bytes = 1},
        {.name = "b",
         .forward = 1,
         .slot_bytes = 10,
         .fixed_bytes = 1,
         .cut = true,
         .carried_bytes = 2},
        {.name = "c",
         .forward = 1,
         .slot_bytes = 10,
         .fixed_bytes = 1,
         .cut = true,
         .carried_bytes = 3},
        {.name = "d",
         .forward = 1,
         .slot_bytes = 10,
         .fixed_bytes = 1,
         .cut = true,
         .carried_bytes = 1},
    };
    const int64_t memory[] = {30, 60};
    struct balance_config config = {
        .layers = layers, .n_layers = 4, .stages = 2, .schedule = PIPELINE_1F1B, .microbatches = 4};
    struct balance balance;
    struct err err;
    ck_assert_int_eq(find(&config, &balance, &err), 0);
    ck_assert_uint_eq(balance.first[1], 2);
    ck_assert_int_eq(balance.bytes[0], 2 + 2 * 20 + 2 * 3);
    ck_assert_int_eq(balance.bytes[1], 2 + 1 * (20 + 3) + 2 * 3);
    config.memory_bytes = memory;
    ck_assert_int_eq(find(&config, &balance, &err), 0);
    ck_assert_uint_eq(balance.first[1], 1);
    ck_assert_int_eq(balance.bytes[0], 1 + 2 * 10 + 2 * 2);
    ck_assert_int_eq(balance.bytes[1], 3 + 1 * (30 + 2) + 2 * 2);
    config.schedule = PIPELINE_GPIPE;
    ck_assert_int_eq(find(&config, &balance, &err), ERR_JOB_INVALID);
}
END_TEST

START_TEST(what_does_not_fit_is_said)
{
    const int64_t mib = 1 << 20;
    const struct balance_layer layers[] = {
        {.name = "conv1", .forward = 1, .fixed_bytes = mib},
        {.name = "layer1.0", .forward = 1, .fixed_bytes = 6 * mib, .cut = true},
        {.name = "fc", .forward = 1, .fixed_bytes = 2 * mib, .cut = true},
    };
    const int64_t memory[] = {5 * mib, 4 * mib};
    struct balance_config config = {
        .layers = layers, .n_layers = 3, .stages = 2, .microbatches = 1, .memory_bytes = memory};
    struct balance balance;
    struct err err;
    ck_assert_int_eq(find(&config, &balance, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.path, "/parallel");
    ck_assert_str_eq(err.message,
                     "the model does not fit in 2 stages: of all splits the one that lacks least "
                     "needs 7.0 MiB in stage 0 (layers \"conv1\" to \"layer1.0\"), whose device "
                     "has 5.0 MiB");
    config.stages = 3;
    const int64_t three[] = {mib, 6 * mib, 2 * mib};
    config.memory_bytes = three;
    ck_assert_int_eq(find(&config, &balance, &err), 0);
}
END_TEST

START_TEST(cuts_only_where_they_are_allowed)
{
    const struct balance_layer layers[] = {
        {.name = "a", .forward = 1},
        {.name = "b", .forward = 1},
        {.name = "c", .forward = 1, .cut = true},
        {.name = "d", .forward = 9},
    };
    struct balance_config config = {.layers = layers, .n_layers = 4, .stages = 2};
    struct balance balance;
    struct err err;
    ck_assert_int_eq(find(&config, &balance, &err), 0);
    ck_assert_uint_eq(balance.first[1], 2);
    config.stages = 3;
    ck_assert_int_eq(find(&config, &balance, &err), ERR_JOB_INVALID);
    ck_assert_str_eq(err.message, "the model can be cut in 2 stages at most, found 3");
}
END_TEST

/* Every split, one after the other. */
struct brute {
    const struct balance_config *config;
    size_t first[MOST_STAGES + 1];
    double bottleneck, squares; /* of the best; INFINITY: none fits */
};

static int64_t carried(const struct balance_config *config, size_t layer)
{
    return layer > 0 && layer < config->n_layers ? config->layers[layer].carried_bytes : 0;
}

/* Of a micro-batch in flight what its layers keep and what it received; what is sent twice. */
static int64_t bytes_of(const struct brute *brute, int stage)
{
    const struct balance_config *config = brute->config;
    size_t first = brute->first[stage], end = brute->first[stage + 1];
    int64_t slots = timetable_slots(config->schedule, config->stages, stage, config->microbatches);
    int64_t bytes =
        2 * (carried(config, first) + carried(config, end)) + slots * carried(config, first);
    for (size_t i = first; i < end; i++)
        bytes += config->layers[i].fixed_bytes + slots * config->layers[i].slot_bytes;
    return bytes;
}

static void judge(struct brute *brute)
{
    double bottleneck = 0, squares = 0;
    for (int s = 0; s < brute->config->stages; s++) {
        double seconds = 0;
        for (size_t i = brute->first[s]; i < brute->first[s + 1]; i++) {
            const struct balance_layer *layer = &brute->config->layers[i];
            seconds += layer->forward + layer->backward + layer->weight;
        }
        if (bytes_of(brute, s) > brute->config->memory_bytes[s])
            return;
        bottleneck = fmax(bottleneck, seconds);
        squares += seconds * seconds;
    }
    if (bottleneck < brute->bottleneck ||
        (bottleneck == brute->bottleneck && squares < brute->squares)) {
        brute->bottleneck = bottleneck;
        brute->squares = squares;
    }
}

static void try_all(struct brute *brute, int stage)
{
    const struct balance_config *config = brute->config;
    if (stage == config->stages) {
        brute->first[stage] = config->n_layers;
        judge(brute);
        return;
    }
    for (size_t i = brute->first[stage - 1] + 1; i < config->n_layers; i++) {
        brute->first[stage] = i;
        if (config->layers[i].cut)
            try_all(brute, stage + 1);
    }
}

/* Small whole numbers: sums are exact in any order. */
static void make_layers(struct balance_layer *layers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        layers[i] = (struct balance_layer){.name = "layer",
                                           .forward = (double)(random() % 6),
                                           .backward = (double)(random() % 6),
                                           .weight = (double)(random() % 6),
                                           .slot_bytes = random() % 20,
                                           .fixed_bytes = random() % 20,
                                           .cut = random() % 4 != 0,
                                           .carried_bytes = random() % 10};
}

static bool check_random(void)
{
    struct balance_layer layers[MOST_LAYERS];
    int64_t memory[MOST_STAGES];
    struct balance_config config = {
        .layers = layers,
        .n_layers = 1 + (size_t)(random() % MOST_LAYERS),
        .schedule = (enum pipeline_schedule)(random() % 4),
        .microbatches = 1 + (int)(random() % 4),
        .memory_bytes = memory,
    };
    config.stages = 1 + (int)(random() % MOST_STAGES);
    make_layers(layers, config.n_layers);
    for (int s = 0; s < MOST_STAGES; s++)
        memory[s] = 20 + random() % 250;
    struct brute brute = {.config = &config, .bottleneck = INFINITY, .squares = INFINITY};
    try_all(&brute, 1);
    struct balance balance;
    struct err err;
    int rc = find(&config, &balance, &err);
    if (isinf(brute.bottleneck)) {
        ck_assert_int_eq(rc, ERR_JOB_INVALID);
        return false;
    }
    ck_assert_int_eq(rc, 0);
    double squares = 0;
    for (int s = 0; s < config.stages; s++) {
        squares += balance.seconds[s] * balance.seconds[s];
        ck_assert_int_le(balance.bytes[s], memory[s]);
    }
    ck_assert_double_eq(balance.bottleneck, brute.bottleneck);
    ck_assert_double_eq(squares, brute.squares);
    return true;
}

START_TEST(equals_the_best_of_all_splits)
{
    int fit = 0;
    srandom(1);
    for (int i = 0; i < SEEDS; i++)
        fit += check_random();
    ck_assert_int_gt(fit, SEEDS / 5);
    ck_assert_int_lt(fit, SEEDS * 4 / 5);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    const struct balance_layer layers[] = {{.name = "a", .forward = 1},
                                           {.name = "b", .forward = 1, .cut = true}};
    struct balance_config config = {.layers = layers, .n_layers = 2, .stages = 2};
    struct balance balance;
    struct err err;
    long n = 0;
    bool failed = true;
    while (failed) {
        oom_arm(++n);
        int rc = balance_find(&config, &balance, &err);
        failed = oom_disarm();
        ck_assert_int_eq(rc, failed ? ERR_NOMEM : 0);
    }
    ck_assert_int_gt(n, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("balance");
    TCase *tcase = checks_case(suite, "balance", 0);
    tcase_add_test(tcase, the_largest_stage_is_smallest);
    tcase_add_test(tcase, of_equal_ones_the_most_even);
    tcase_add_test(tcase, memory_moves_the_cut);
    tcase_add_test(tcase, what_does_not_fit_is_said);
    tcase_add_test(tcase, cuts_only_where_they_are_allowed);
    tcase_add_test(tcase, equals_the_best_of_all_splits);
    tcase_add_test(tcase, every_allocation_may_fail);
    return checks_run(suite);
}
