/* Timetables against the papers' figures, against the ideal times, and their rules under random
 * costs. */
#include <math.h>
#include <stdlib.h>

#include "engine/parallel/timetable.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

static struct timetable *build(const struct timetable_config *config)
{
    struct timetable *table = NULL;
    struct err err = {0};
    ck_assert_int_eq(timetable_build(config, &table, &err), 0);
    return table;
}

static const struct grid_case {
    struct timetable_config config;
    const char *grid;
} grids[] = {
    {{.schedule = PIPELINE_NONE, .stages = 2, .microbatches = 1, .training = true},
     "step stage 0 stage 1\n"
     "   0      F0       .\n"
     "   1       .      F0\n"
     "   2       .      B0\n"
     "   3       .      B0\n"
     "   4      B0       .\n"
     "   5      B0       .\n"},
    {{.schedule = PIPELINE_GPIPE, .stages = 3, .microbatches = 3, .training = true},
     "step stage 0 stage 1 stage 2\n"
     "   0      F0       .       .\n"
     "   1      F1      F0       .\n"
     "   2      F2      F1      F0\n"
     "   3       .      F2      F1\n"
     "   4       .       .      F2\n"
     "   5       .       .      B0\n"
     "   6       .       .      B0\n"
     "   7       .      B0      B1\n"
     "   8       .      B0      B1\n"
     "   9      B0      B1      B2\n"
     "  10      B0      B1      B2\n"
     "  11      B1      B2       .\n"
     "  12      B1      B2       .\n"
     "  13      B2       .       .\n"
     "  14      B2       .       .\n"},
    {{.schedule = PIPELINE_1F1B, .stages = 4, .microbatches = 8, .training = true},
     "step stage 0 stage 1 stage 2 stage 3\n"
     "   0      F0       .       .       .\n"
     "   1      F1      F0       .       .\n"
     "   2      F2      F1      F0       .\n"
     "   3      F3      F2      F1      F0\n"
     "   4       .       .       .      B0\n"
     "   5       .       .       .      B0\n"
     "   6       .       .      B0      F1\n"
     "   7       .       .      B0      B1\n"
     "   8       .      B0      F2      B1\n"
     "   9       .      B0      B1      F2\n"
     "  10      B0      F3      B1      B2\n"
     "  11      B0      B1      F3      B2\n"
     "  12      F4      B1      B2      F3\n"
     "  13      B1      F4      B2      B3\n"
     "  14      B1      B2      F4      B3\n"
     "  15      F5      B2      B3      F4\n"
     "  16      B2      F5      B3      B4\n"
     "  17      B2      B3      F5      B4\n"
     "  18      F6      B3      B4      F5\n"
     "  19      B3      F6      B4      B5\n"
     "  20      B3      B4      F6      B5\n"
     "  21      F7      B4      B5      F6\n"
     "  22      B4      F7      B5      B6\n"
     "  23      B4      B5      F7      B6\n"
     "  24       .      B5      B6      F7\n"
     "  25      B5       .      B6      B7\n"
     "  26      B5      B6       .      B7\n"
     "  27       .      B6      B7       .\n"
     "  28      B6       .      B7       .\n"
     "  29      B6      B7       .       .\n"
     "  30       .      B7       .       .\n"
     "  31      B7       .       .       .\n"
     "  32      B7       .       .       .\n"},
    {{.schedule = PIPELINE_ZERO_BUBBLE, .stages = 4, .microbatches = 8, .training = true},
     "step stage 0 stage 1 stage 2 stage 3\n"
     "   0      F0       .       .       .\n"
     "   1      F1      F0       .       .\n"
     "   2      F2      F1      F0       .\n"
     "   3      F3      F2      F1      F0\n"
     "   4       .       .       .      B0\n"
     "   5       .       .      B0      F1\n"
     "   6       .      B0      F2      B1\n"
     "   7      B0      F3      B1      F2\n"
     "   8      W0      B1      F3      B2\n"
     "   9      F4      W0      B2      F3\n"
     "  10      B1      F4      W0      B3\n"
     "  11      W1      B2      F4      W0\n"
     "  12      F5      W1      B3      F4\n"
     "  13      B2      F5      W1      B4\n"
     "  14      W2      B3      F5      W1\n"
     "  15      F6      W2      B4      F5\n"
     "  16      B3      F6      W2      B5\n"
     "  17      W3      B4      F6      W2\n"
     "  18      F7      W3      B5      F6\n"
     "  19      B4      F7      W3      B6\n"
     "  20      W4      B5      F7      W3\n"
     "  21      B5      W4      B6      F7\n"
     "  22      W5      B6      W4      B7\n"
     "  23      B6      W5      B7      W4\n"
     "  24      W6      B7      W5      W5\n"
     "  25      B7      W6      W6      W6\n"
     "  26      W7      W7      W7      W7\n"},
    {{.schedule = PIPELINE_ZERO_BUBBLE, .stages = 2, .microbatches = 3, .training = true},
     "step stage 0 stage 1\n"
     "   0      F0       .\n"
     "   1      F1      F0\n"
     "   2       .      B0\n"
     "   3      B0      F1\n"
     "   4      W0      B1\n"
     "   5      F2      W0\n"
     "   6      B1      F2\n"
     "   7      W1      B2\n"
     "   8      B2      W1\n"
     "   9      W2      W2\n"},
    /* Fewer micro-batches than stages. */
    {{.schedule = PIPELINE_ZERO_BUBBLE, .stages = 3, .microbatches = 2, .training = true},
     "step stage 0 stage 1 stage 2\n"
     "   0      F0       .       .\n"
     "   1      F1      F0       .\n"
     "   2       .      F1      F0\n"
     "   3       .       .      B0\n"
     "   4       .      B0      F1\n"
     "   5      B0       .      B1\n"
     "   6      W0      B1      W0\n"
     "   7      B1      W0      W1\n"
     "   8      W1      W1       .\n"},
    {{.schedule = PIPELINE_1F1B, .stages = 1, .microbatches = 2, .training = true},
     "step stage 0\n"
     "   0      F0\n"
     "   1      B0\n"
     "   2      B0\n"
     "   3      F1\n"
     "   4      B1\n"
     "   5      B1\n"},
    {{.schedule = PIPELINE_ZERO_BUBBLE, .stages = 3, .microbatches = 2},
     "step stage 0 stage 1 stage 2\n"
     "   0      F0       .       .\n"
     "   1      F1      F0       .\n"
     "   2       .      F1      F0\n"
     "   3       .       .      F1\n"},
};

START_TEST(grid_equals_the_paper)
{
    struct timetable *table = build(&grids[_i].config);
    char *grid = timetable_grid(table);
    ck_assert_str_eq(grid, grids[_i].grid);
    free(grid);
    timetable_free(table);
}
END_TEST

/* However many micro-batches: the beginning, three dots, the end. */
START_TEST(a_long_grid_leaves_out_its_middle)
{
    struct timetable_config config = {.schedule = PIPELINE_GPIPE, .stages = 1, .microbatches = _i};
    struct timetable *table = build(&config);
    char *grid = timetable_grid(table), last[32];
    int rows = 0;
    for (char *p = strchr(grid, '\n'); p != NULL && p[1] != '\0'; p = strchr(p + 1, '\n'))
        rows++;
    ck_assert_int_eq(rows, _i <= 100 ? _i : 101);
    ck_assert_int_eq(strstr(grid, "\n ...\n") != NULL, _i > 100);
    snprintf(last, sizeof last, "F%d", _i - 1);
    ck_assert_ptr_nonnull(strstr(grid, last));
    free(grid);
    timetable_free(table);
}
END_TEST

/* Two equal stages, a micro-batch costs 1 in each: the parts of ResNet-50's step. */
static const struct ideal_case {
    enum pipeline_schedule schedule;
    double rest; /* efficiency is m / (m + rest) */
} ideals[] = {
    {PIPELINE_GPIPE, 1},
    {PIPELINE_1F1B, 1},
    {PIPELINE_ZERO_BUBBLE, 0.334}, /* backward's: before the first comes back, stage 0 rests */
};

START_TEST(efficiency_is_the_ideal_one)
{
    struct timetable_cost costs[2 * 40];
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++)
        costs[i] = (struct timetable_cost){{.327, .334, .339}};
    for (int m = 2; m <= 40; m++) {
        struct timetable_config config = {.schedule = ideals[_i].schedule,
                                          .stages = 2,
                                          .microbatches = m,
                                          .training = true,
                                          .costs = costs};
        struct timetable *table = build(&config);
        ck_assert_double_eq_tol(m / table->seconds, m / (m + ideals[_i].rest), 1e-12);
        ck_assert_double_eq_tol(1 - table->bubble, m / table->seconds, 1e-12);
        timetable_free(table);
    }
}
END_TEST

/* (p - 1)(F + B - W) of a stage's time is ZB-H1's bubble where F, B and W cost the same: a third of
 * 1F1B's (p - 1)(F + B + W). */
START_TEST(zero_bubble_rests_a_third)
{
    for (int p = 1; p <= 8; p++) {
        struct timetable_config config = {
            .schedule = PIPELINE_ZERO_BUBBLE, .stages = p, .microbatches = 2 * p, .training = true};
        struct timetable *zero = build(&config);
        config.schedule = PIPELINE_1F1B;
        struct timetable *usual = build(&config);
        ck_assert_double_eq_tol(zero->seconds, 6 * p + p - 1, 1e-9);
        ck_assert_double_eq_tol(usual->seconds, 6 * p + 3 * (p - 1), 1e-9);
        timetable_free(zero);
        timetable_free(usual);
    }
}
END_TEST

enum { MOST_STAGES = 6, MOST_BATCHES = 9, SEEDS = 300 };

struct random_case {
    struct timetable_config config;
    struct timetable_cost costs[MOST_STAGES * MOST_BATCHES];
    struct timetable *table;
    const struct timetable_entry *found[MOST_STAGES][SECTION_COUNT][MOST_BATCHES];
};

static void make_case(struct random_case *c, unsigned seed)
{
    srandom(seed);
    c->config = (struct timetable_config){
        .schedule = (enum pipeline_schedule)(random() % 4),
        .stages = 1 + (int)(random() % MOST_STAGES),
        .microbatches = 1 + (int)(random() % MOST_BATCHES),
        .training = random() % 5 != 0,
        .costs = c->costs,
    };
    for (int i = 0; i < MOST_STAGES * MOST_BATCHES; i++)
        for (int k = 0; k < SECTION_COUNT; k++)
            c->costs[i].of[k] = random() % 4 == 0 ? 0 : (double)(random() % 100) / 7;
    c->table = build(&c->config);
}

/* Each section once, those of a kind in order. */
static void find_entries(struct random_case *c)
{
    for (int s = 0; s < c->config.stages; s++) {
        int next[SECTION_COUNT] = {0};
        for (size_t i = 0; i < c->table->stages[s].n; i++) {
            const struct timetable_entry *entry = &c->table->stages[s].entries[i];
            ck_assert_int_eq(entry->microbatch, next[entry->kind]++);
            c->found[s][entry->kind][entry->microbatch] = entry;
        }
        bool split = timetable_splits_backward(c->config.schedule);
        int m = c->config.microbatches, training = c->config.training;
        ck_assert_int_eq(next[SECTION_FORWARD], m);
        ck_assert_int_eq(next[SECTION_BACKWARD], training ? m : 0);
        ck_assert_int_eq(next[SECTION_WEIGHTS], training && split ? m : 0);
    }
}

static double end_of(const struct random_case *c, int stage, enum section kind, int i)
{
    return stage >= 0 && stage < c->config.stages ? c->found[stage][kind][i]->end : 0;
}

/* When what a section needs has ended, of its own stage's too. */
static double needs_end(const struct random_case *c, int stage, const struct timetable_entry *entry)
{
    int i = entry->microbatch;
    if (entry->kind == SECTION_FORWARD)
        return end_of(c, stage - 1, SECTION_FORWARD, i);
    if (entry->kind == SECTION_WEIGHTS)
        return end_of(c, stage, SECTION_BACKWARD, i);
    return fmax(end_of(c, stage + 1, SECTION_BACKWARD, i), end_of(c, stage, SECTION_FORWARD, i));
}

static double cost_of(const struct random_case *c, int stage, const struct timetable_entry *entry)
{
    const double *cost = c->costs[entry->microbatch * c->config.stages + stage].of;
    bool split = timetable_splits_backward(c->config.schedule);
    bool both = entry->kind == SECTION_BACKWARD && !split;
    return cost[entry->kind] + (both ? cost[SECTION_WEIGHTS] : 0);
}

/* A section begins as soon as its stage is free and its needs have ended, and not before: so no
 * list waits for itself. */
static void check_times(const struct random_case *c)
{
    double last = 0, busy = 0;
    for (int s = 0; s < c->config.stages; s++) {
        double free_at = 0;
        for (size_t i = 0; i < c->table->stages[s].n; i++) {
            const struct timetable_entry *entry = &c->table->stages[s].entries[i];
            ck_assert_double_eq(entry->start, fmax(free_at, needs_end(c, s, entry)));
            ck_assert_double_eq_tol(entry->end - entry->start, cost_of(c, s, entry), 1e-9);
            busy += cost_of(c, s, entry);
            free_at = entry->end;
        }
        last = fmax(last, free_at);
    }
    ck_assert_double_eq(c->table->seconds, last);
    if (last > 0)
        ck_assert_double_eq_tol(c->table->bubble, 1 - busy / last / c->config.stages, 1e-9);
    else
        ck_assert_double_eq(c->table->bubble, 0);
}

/* Micro-batches in flight, counted from the list alone. */
static void check_slots(const struct random_case *c)
{
    int p = c->config.stages, m = c->config.microbatches;
    const int bounds[] = {[PIPELINE_NONE] = 1, [PIPELINE_GPIPE] = m, [PIPELINE_ZERO_BUBBLE] = p};
    for (int s = 0; s < p; s++) {
        int slots = c->table->stages[s].slots;
        int bound = c->config.schedule == PIPELINE_1F1B ? p - s : bounds[c->config.schedule];
        int wanted = !c->config.training ? 1 : bound < m ? bound : m;
        ck_assert_int_eq(slots, wanted);
        if (c->config.training)
            ck_assert_int_eq(timetable_slots(c->config.schedule, p, s, m), slots);
    }
}

START_TEST(rules_hold_under_random_costs)
{
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct random_case c = {0};
        make_case(&c, seed);
        find_entries(&c);
        check_times(&c);
        check_slots(&c);
        timetable_free(c.table);
    }
}
END_TEST

START_TEST(costs_of_zero_take_no_time)
{
    struct timetable_cost costs[3 * 2] = {0};
    struct timetable_config config = {.schedule = PIPELINE_ZERO_BUBBLE,
                                      .stages = 3,
                                      .microbatches = 2,
                                      .training = true,
                                      .costs = costs};
    struct timetable *table = build(&config);
    ck_assert_double_eq(table->seconds, 0);
    ck_assert_double_eq(table->bubble, 0);
    timetable_free(table);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    struct timetable_config config = {
        .schedule = PIPELINE_ZERO_BUBBLE, .stages = 3, .microbatches = 2, .training = true};
    for (long n = 1;; n++) {
        struct timetable *table = NULL;
        struct err err = {0};
        oom_arm(n);
        int rc = timetable_build(&config, &table, &err);
        char *grid = rc == 0 ? timetable_grid(table) : NULL;
        bool failed = oom_disarm();
        ck_assert_int_eq(rc, table != NULL ? 0 : ERR_NOMEM);
        ck_assert(failed || grid != NULL);
        free(grid);
        timetable_free(table);
        if (!failed)
            break;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timetable");
    TCase *tcase = checks_case(suite, "timetable", 0);
    tcase_add_loop_test(tcase, grid_equals_the_paper, 0, (int)(sizeof grids / sizeof grids[0]));
    tcase_add_loop_test(tcase, a_long_grid_leaves_out_its_middle, 99, 103);
    tcase_add_loop_test(tcase, efficiency_is_the_ideal_one, 0,
                        (int)(sizeof ideals / sizeof ideals[0]));
    tcase_add_test(tcase, zero_bubble_rests_a_third);
    tcase_add_test(tcase, rules_hold_under_random_costs);
    tcase_add_test(tcase, costs_of_zero_take_no_time);
    tcase_add_test(tcase, every_allocation_may_fail);
    return checks_run(suite);
}
