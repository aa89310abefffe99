/* comm in shared memory: sums, gathers, bits, abort. Ranks are real threads. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/comm/comm.h"
#include "tests/lib/checks.h"

enum { MAX_RANKS = 8, ROUNDS = 50 };

struct party {
    struct comm *comm;
    int rank;
    size_t count;
    float *data;
    int rc;
};

/* Values whose sum depends on the order of addition. */
static float term(int rank, size_t i, int round)
{
    float v = (float)((i * 2654435761u + (size_t)round) % 1000) / 7.0f;
    return rank % 2 == 0 ? v * 1e6f : -v / 3.0f;
}

/* tree.h's definition: the left part is the largest power of two of leaves. */
static float tree_of(int first, int end, size_t i, int round)
{
    int left = 1;
    if (end - first == 1)
        return term(first, i, round);
    while (2 * left < end - first)
        left *= 2;
    return tree_of(first, first + left, i, round) + tree_of(first + left, end, i, round);
}

static void run_parties(int size, struct party *party, void *(*fn)(void *))
{
    pthread_t thread[MAX_RANKS];
    for (int r = 0; r < size; r++)
        ck_assert_int_eq(pthread_create(&thread[r], NULL, fn, &party[r]), 0);
    for (int r = 0; r < size; r++)
        pthread_join(thread[r], NULL);
}

static void *reduce_rounds(void *arg)
{
    struct party *p = arg;
    struct collective *c = comm_collective(p->comm, p->rank);
    struct err err = ERR_INIT;
    for (int round = 0; round < ROUNDS && p->rc == 0; round++) {
        for (size_t i = 0; i < p->count; i++)
            p->data[i] = term(p->rank, i, round);
        p->rc = c->all_reduce(c, p->data, p->count, &err);
        for (size_t i = 0; i < p->count && p->rc == 0; i++)
            if (p->data[i] != tree_of(0, c->size, i, round))
                p->rc = 1;
    }
    return NULL;
}

static const struct {
    int size;
    size_t count;
} shapes[] = {{1, 10}, {2, 1}, {2, 4099}, {3, 1000}, {3, 17}, {8, 5}, {8, 20000}};

static void run_shape(int row, void *(*fn)(void *))
{
    int size = shapes[row].size;
    struct party party[MAX_RANKS] = {0};
    struct comm *comm;
    struct err err = ERR_INIT;
    ck_assert_int_eq(comm_new(size, &comm, &err), 0);
    for (int r = 0; r < size; r++) {
        size_t count = shapes[row].count;
        party[r] = (struct party){comm, r, count, malloc(count * sizeof(float)), 0};
    }
    run_parties(size, party, fn);
    for (int r = 0; r < size; r++) {
        ck_assert_int_eq(party[r].rc, 0);
        free(party[r].data);
    }
    comm_free(comm);
}

START_TEST(sums_as_a_tree)
{
    run_shape(_i, reduce_rounds);
}
END_TEST

enum { STARTED = 300 }; /* more than are kept under way */

/* Ranks come to their sums at other times, and find them all done at the finish. */
static void *start_rounds(void *arg)
{
    struct party *p = arg;
    struct collective *c = comm_collective(p->comm, p->rank);
    struct err err = ERR_INIT;
    size_t n = p->count / STARTED + 1;
    float *data = malloc(STARTED * n * sizeof *data);
    for (int round = 0; round < 3 && p->rc == 0; round++) {
        for (int k = 0; k < STARTED && p->rc == 0; k++) {
            for (size_t i = 0; i < n; i++)
                data[(size_t)k * n + i] = term(p->rank, i, round + k);
            p->rc = c->reduce_start(c, data + (size_t)k * n, n, &err);
        }
        if (p->rc == 0)
            p->rc = c->reduce_finish(c, &err);
        for (int k = 0; k < STARTED && p->rc == 0; k++)
            for (size_t i = 0; i < n; i++)
                if (data[(size_t)k * n + i] != tree_of(0, c->size, i, round + k))
                    p->rc = 1;
    }
    free(data);
    return NULL;
}

/* Leaves spread over the ranks: what each rank has, in whole nodes; 0 … MAX_LEAVES leaves a rank.
 */

enum { MAX_LEAVES = 13, LEAF_COUNT = 3000 };

struct owner {
    struct comm *comm;
    int rank, first, end;
    const float *before;
    float *leaf[MAX_LEAVES], to[LEAF_COUNT];
    int rc;
};

static void *sum_leaves(void *arg)
{
    struct owner *o = arg;
    struct term terms[MAX_LEAVES];
    struct err err = ERR_INIT;
    int n = 0;
    for (int leaf = o->first; leaf < o->end; leaf++) {
        o->leaf[n] = malloc(LEAF_COUNT * sizeof(float));
        for (size_t i = 0; i < LEAF_COUNT; i++)
            o->leaf[n][i] = term(leaf, i, 0);
        terms[n] = (struct term){o->leaf[n], leaf, leaf + 1};
        n++;
    }
    int leaves = n;
    for (int k = 1; k < n; k++) /* pairs join, as a device does on its own */
        if (tree_joins(&terms[k - 1], &terms[k])) {
            tree_add((float *)terms[k - 1].data, terms[k].data, LEAF_COUNT);
            terms[k - 1].end = terms[k].end;
            memmove(&terms[k], &terms[k + 1], (size_t)(--n - k) * sizeof terms[0]);
        }
    const struct comm_sum sum = {terms, n, o->before, o->to, LEAF_COUNT};
    o->rc = comm_sum(o->comm, o->rank, &sum, &err);
    for (int k = 0; k < leaves; k++)
        free(o->leaf[k]);
    return NULL;
}

static const int splits[][5] = {
    {0, 1},        {0, 13},         {0, 4, 8},      {0, 3, 8},
    {0, 1, 2, 13}, {0, 8, 8, 8, 8}, {0, 5, 10, 13}, {0, 4, 7, 11, 13},
};

START_TEST(sums_leaves_wherever_they_are)
{
    pthread_t thread[4];
    struct owner *owner = calloc(4, sizeof *owner);
    float before[LEAF_COUNT];
    struct comm *comm;
    struct err err = ERR_INIT;
    const int *split = splits[_i / 2];
    int size = 0, leaves = 0;
    for (size_t i = 0; i < LEAF_COUNT; i++)
        before[i] = term(7, i, 3);
    while (size < 4 && split[size + 1] > 0)
        leaves = split[++size];
    ck_assert_int_eq(comm_new(size, &comm, &err), 0);
    for (int r = 0; r < size; r++)
        owner[r] = (struct owner){.comm = comm,
                                  .rank = r,
                                  .first = split[r],
                                  .end = split[r + 1],
                                  .before = _i % 2 ? before : NULL};
    for (int r = 0; r < size; r++)
        ck_assert_int_eq(pthread_create(&thread[r], NULL, sum_leaves, &owner[r]), 0);
    for (int r = 0; r < size; r++)
        pthread_join(thread[r], NULL);
    for (int r = 0; r < size; r++) {
        ck_assert_int_eq(owner[r].rc, 0);
        for (size_t i = 0; i < LEAF_COUNT; i++) {
            float sum = tree_of(0, leaves, i, 0);
            ck_assert(owner[r].to[i] == (_i % 2 ? before[i] + sum : sum));
        }
    }
    comm_free(comm);
    free(owner);
}
END_TEST

static void *gather_rounds(void *arg)
{
    struct party *p = arg;
    struct collective *c = comm_collective(p->comm, p->rank);
    struct err err = ERR_INIT;
    size_t share = (p->count + (size_t)c->size - 1) / (size_t)c->size + 1; /* the last has less */
    for (int round = 0; round < ROUNDS && p->rc == 0; round++) {
        for (size_t i = 0; i < p->count; i++)
            p->data[i] = i / share == (size_t)p->rank ? term(0, i, round) : -1;
        p->rc = c->all_gather(c, p->data, p->count, share, &err);
        for (size_t i = 0; i < p->count && p->rc == 0; i++)
            if (p->data[i] != term(0, i, round))
                p->rc = 1;
    }
    return NULL;
}

START_TEST(sums_that_are_started)
{
    run_shape(_i, start_rounds);
}
END_TEST

START_TEST(gathers)
{
    run_shape(_i, gather_rounds);
}
END_TEST

/* The last rank never comes: it aborts instead. */
static void *reduce_or_abort(void *arg)
{
    struct party *p = arg;
    struct collective *c = comm_collective(p->comm, p->rank);
    struct err err = ERR_INIT;
    float data[100] = {0};
    if (p->rank == c->size - 1)
        comm_abort(p->comm);
    p->rc = c->all_reduce(c, data, 100, &err);
    return NULL;
}

START_TEST(abort_wakes_everybody)
{
    enum { SIZE = 4 };
    struct party party[SIZE] = {0};
    struct comm *comm;
    struct err err = ERR_INIT;
    ck_assert_int_eq(comm_new(SIZE, &comm, &err), 0);
    for (int r = 0; r < SIZE; r++)
        party[r] = (struct party){.comm = comm, .rank = r};
    run_parties(SIZE, party, reduce_or_abort);
    for (int r = 0; r < SIZE; r++)
        ck_assert_int_eq(party[r].rc, ERR_CANCELLED);
    comm_abort(comm); /* again: no harm */
    comm_free(comm);
}
END_TEST

static void *come_late(void *arg)
{
    struct party *p = arg;
    struct collective *c = comm_collective(p->comm, p->rank);
    struct err err = ERR_INIT;
    double begun = clock_seconds();
    while (p->rank == 1 && clock_seconds() - begun < 0.02)
        ; /* it computes meanwhile */
    p->rc = c->all_reduce(c, p->data, p->count, &err);
    return NULL;
}

START_TEST(says_what_a_rank_has_spent)
{
    enum { COUNT = 100000 };
    static float data[2][COUNT];
    struct comm *comm;
    struct err err = ERR_INIT;
    ck_assert_int_eq(comm_new(2, &comm, &err), 0);
    struct party party[2] = {{comm, 0, COUNT, data[0], 0}, {comm, 1, COUNT, data[1], 0}};
    run_parties(2, party, come_late);
    struct comm_times times = comm_times(comm, 0);
    ck_assert_double_gt(times.waited, 0.015);
    ck_assert_double_gt(times.summed, 0);
    ck_assert_double_gt(comm_times(comm, 1).summed, 0);
    times = comm_times(comm, 0);
    ck_assert(times.waited == 0 && times.summed == 0);
    comm_free(comm);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm");
    TCase *tcase = checks_case(suite, "local", 60);
    tcase_add_loop_test(tcase, sums_as_a_tree, 0, (int)(sizeof shapes / sizeof shapes[0]));
    tcase_add_loop_test(tcase, sums_that_are_started, 0, (int)(sizeof shapes / sizeof shapes[0]));
    tcase_add_loop_test(tcase, gathers, 0, (int)(sizeof shapes / sizeof shapes[0]));
    tcase_add_loop_test(tcase, sums_leaves_wherever_they_are, 0,
                        2 * (int)(sizeof splits / sizeof splits[0]));
    tcase_add_loop_test(tcase, abort_wakes_everybody, 0, 20);
    tcase_add_test(tcase, says_what_a_rank_has_spent);
    return checks_run(suite);
}
