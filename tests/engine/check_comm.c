/* comm in shared memory: sums, bits, abort. Ranks are real threads. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

static float sum_in_rank_order(int size, size_t i, int round)
{
    float sum = term(0, i, round);
    for (int r = 1; r < size; r++)
        sum += term(r, i, round);
    return sum;
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
            if (p->data[i] != sum_in_rank_order(c->size, i, round))
                p->rc = 1;
    }
    return NULL;
}

static const struct {
    int size;
    size_t count;
} shapes[] = {{1, 10}, {2, 1}, {2, 4099}, {3, 1000}, {3, 17}, {8, 5}, {8, 20000}};

START_TEST(sums_in_rank_order)
{
    int size = shapes[_i].size;
    struct party party[MAX_RANKS] = {0};
    struct comm *comm;
    struct err err = ERR_INIT;
    ck_assert_int_eq(comm_new(size, &comm, &err), 0);
    for (int r = 0; r < size; r++) {
        size_t count = shapes[_i].count;
        party[r] = (struct party){comm, r, count, malloc(count * sizeof(float)), 0};
    }
    run_parties(size, party, reduce_rounds);
    for (int r = 0; r < size; r++) {
        ck_assert_int_eq(party[r].rc, 0);
        free(party[r].data);
    }
    comm_free(comm);
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

int main(void)
{
    Suite *suite = suite_create("comm");
    TCase *tcase = checks_case(suite, "local", 60);
    tcase_add_loop_test(tcase, sums_in_rank_order, 0, (int)(sizeof shapes / sizeof shapes[0]));
    tcase_add_loop_test(tcase, abort_wakes_everybody, 0, 20);
    return checks_run(suite);
}
