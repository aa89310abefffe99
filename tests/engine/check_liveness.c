/* check_liveness.c: offsets of intervals: cases by value, and what holds for any. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/plan/liveness.h"
#include "tests/lib/checks.h"

enum { MAX_INTERVALS = 300 };

static size_t assign(struct interval *intervals, size_t n)
{
    struct err err = ERR_INIT;
    size_t bytes = 12345;
    ck_assert_int_eq(liveness_assign(intervals, n, &bytes, &err), 0);
    return bytes;
}

/* The most bytes alive at any step: what no assignment can beat. */
static size_t floor_of(const struct interval *intervals, size_t n)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++) { /* the most are alive where one begins */
        size_t bytes = 0;
        for (size_t k = 0; k < n; k++)
            if (intervals[k].first <= intervals[i].first && intervals[i].first <= intervals[k].last)
                bytes += intervals[k].bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static const struct {
    struct interval intervals[5]; /* with the offsets wanted */
    size_t n, bytes, floor;
} cases[] = {
    {.n = 0, .bytes = 0, .floor = 0},
    /* One after the other: the same place. */
    {{{0, 1, 100, 0}, {2, 3, 64, 0}}, 2, 128, 100},
    /* Read and written at one step: both are alive there. */
    {{{0, 1, 100, 0}, {1, 2, 64, 128}}, 2, 192, 164},
    /* The largest goes first, whatever the order. */
    {{{0, 2, 64, 256}, {1, 3, 256, 0}}, 2, 320, 320},
    /* Best fit: the last one goes into the gap of 128 at 448, not into that of 256 at 0. */
    {{{0, 0, 256, 0}, {0, 1, 192, 256}, {0, 0, 128, 448}, {0, 1, 100, 576}, {1, 1, 64, 448}},
     5,
     704,
     676},
    /* Nothing takes no room, wherever it is. */
    {{{0, 5, 0, 64}, {0, 5, 10, 0}}, 2, 64, 10},
};

START_TEST(by_value)
{
    struct interval intervals[5];
    memcpy(intervals, cases[_i].intervals, sizeof intervals);
    for (size_t i = 0; i < cases[_i].n; i++)
        intervals[i].offset = 999;
    ck_assert_uint_eq(assign(intervals, cases[_i].n), cases[_i].bytes);
    for (size_t i = 0; i < cases[_i].n; i++)
        ck_assert_uint_eq(intervals[i].offset, cases[_i].intervals[i].offset);
    ck_assert_uint_eq(floor_of(intervals, cases[_i].n), cases[_i].floor);
}
END_TEST

static void check_apart(const struct interval *a, const struct interval *b)
{
    bool together = a->first <= b->last && b->first <= a->last;
    bool overlap = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    ck_assert_msg(!together || !overlap, "[%d, %d] %zu+%zu and [%d, %d] %zu+%zu", a->first, a->last,
                  a->offset, a->bytes, b->first, b->last, b->offset, b->bytes);
}

static size_t random_intervals(uint64_t seed, struct interval *ret_intervals)
{
    struct rng_key key = rng_key(seed, RNG_DATA, 0);
    uint32_t word[4];
    rng_block(key, 0, 1, word);
    size_t n = 1 + word[0] % MAX_INTERVALS;
    int steps = 1 + (int)(word[1] % 400);
    for (size_t i = 0; i < n; i++) {
        rng_block(key, i, 0, word);
        int first = (int)(word[0] % (uint32_t)steps);
        ret_intervals[i] = (struct interval){.first = first,
                                             .last = first + (int)(word[1] % 20),
                                             .bytes = 1 + word[2] % (1u << word[3] % 20)};
    }
    return n;
}

START_TEST(random_intervals_never_meet)
{
    static struct interval intervals[MAX_INTERVALS], again[MAX_INTERVALS];
    size_t n = random_intervals((uint64_t)_i, intervals);
    memcpy(again, intervals, sizeof intervals);
    size_t bytes = assign(intervals, n), floor = floor_of(intervals, n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(intervals[i].offset % LIVENESS_ALIGN, 0);
        ck_assert_uint_le(intervals[i].offset + intervals[i].bytes, bytes);
        for (size_t k = 0; k < i; k++)
            check_apart(&intervals[i], &intervals[k]);
    }
    ck_assert_uint_ge(bytes, floor);
    ck_assert_uint_le(bytes, floor + floor / 3 + n * LIVENESS_ALIGN);
    ck_assert_uint_eq(assign(again, n), bytes);
    ck_assert_mem_eq(again, intervals, n * sizeof *intervals);
}
END_TEST

/* A training step: activations live from their forward to their backward. Here greedy is perfect.
 */
START_TEST(nested_lifetimes_reach_the_floor)
{
    struct interval intervals[64];
    for (int i = 0; i < 64; i++)
        intervals[i] = (struct interval){.first = i, .last = 127 - i, .bytes = 4096};
    ck_assert_uint_eq(assign(intervals, 64), floor_of(intervals, 64));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("liveness");
    TCase *tcase = checks_case(suite, "liveness", 0);
    tcase_add_loop_test(tcase, by_value, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tcase, random_intervals_never_meet, 0, 50);
    tcase_add_test(tcase, nested_lifetimes_reach_the_floor);
    return checks_run(suite);
}
