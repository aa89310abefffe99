/* local.c: comm.h in shared memory.
 *
 * A sum: every rank shows its terms and waits for the others. Then rank r alone sums slice r over
 * all terms and writes the sum to all ranks: no two ranks touch one element, nothing is copied
 * twice, no memory is needed. A second wait, and all slices are done.
 *
 * A sum that is only started is done by whoever comes by: rank r sums slice r when all ranks have
 * shown their buffers, at its next start, or at the finish. So a rank that is late makes others
 * wait once a step, not at each of its sums.
 *
 * all_gather: every rank shows its buffer, then copies the others' parts out of theirs.
 */
#include "engine/comm/comm.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/bell.h"
#include "engine/base/clock.h"

enum {
    MAX_TERMS = 2 * LIMIT_DEVICES,
    MAX_STARTED = 256,         /* sums under way; more are finished in between */
    LINE = 64 / sizeof(float), /* slices begin on cache lines */
};

struct rank {
    struct collective collective; /* first: the public view */
    struct collective *joined;    /* the device's own; NULL: there is none */
    struct comm *comm;
    struct comm_sum sum; /* of the call in progress */
    struct term own;     /* its terms, of an all-reduce: others may read them after an abort */
    float *data;         /* of the gather in progress */
    double number;
    struct comm_times times;
    struct started {
        float *data;
        size_t count;
    } started[MAX_STARTED];
    atomic_int n_started; /* since the last finish */
    int n_summed;         /* of those, this rank's slices */
};

struct comm {
    int size;
    atomic_int arrived;     /* ranks that wait in the present generation */
    atomic_uint generation; /* waits completed */
    atomic_bool aborted;
    struct bell bell;                          /* generation or aborted changed */
    const struct backend_collectives *devices; /* NULL: nobody has joined */
    struct group *group;                       /* of `devices` */
    pthread_mutex_t group_lock;                /* while it is made, or aborted */
    struct rank rank[];
};

struct awaited {
    struct comm *comm;
    unsigned generation;
};

static bool is_over(const void *context)
{
    const struct awaited *awaited = context;
    return atomic_load(&awaited->comm->generation) != awaited->generation ||
           atomic_load(&awaited->comm->aborted);
}

/* Waits until all ranks are here. A wait that was complete before the abort succeeds. */
static int wait_for_all(struct comm *comm, struct err *err)
{
    unsigned generation = atomic_load(&comm->generation);
    if (atomic_fetch_add(&comm->arrived, 1) + 1 == comm->size) {
        atomic_store(&comm->arrived, 0);
        atomic_store(&comm->generation, generation + 1);
        bell_ring(&comm->bell);
        return 0;
    }
    bell_wait(&comm->bell, is_over, &(struct awaited){comm, generation});
    if (atomic_load(&comm->generation) == generation)
        return err_set(err, ERR_CANCELLED, "another replica failed");
    return 0;
}

static int comm_wait(struct comm *comm, int rank, struct err *err)
{
    double begun = clock_seconds();
    int rc = wait_for_all(comm, err);
    comm->rank[rank].times.waited += clock_seconds() - begun;
    return rc;
}

static void slice_of(const struct comm *comm, int rank, size_t count, size_t *ret_begin,
                     size_t *ret_end)
{
    size_t share = (count + (size_t)comm->size - 1) / (size_t)comm->size;
    share = (share + LINE - 1) / LINE * LINE;
    size_t begin = (size_t)rank * share < count ? (size_t)rank * share : count;
    *ret_begin = begin;
    *ret_end = count - begin < share ? count : begin + share;
}

static int collect(const struct comm *comm, struct term *ret_terms)
{
    int n = 0;
    for (int r = 0; r < comm->size; r++)
        for (int t = 0; t < comm->rank[r].sum.n_terms; t++)
            ret_terms[n++] = comm->rank[r].sum.terms[t];
    return n;
}

static void leave(const struct comm_sum *to, size_t at, size_t n, const float *sum)
{
    if (to->before == NULL) {
        memcpy(to->to + at, sum, n * sizeof *sum);
        return;
    }
    for (size_t i = 0; i < n; i++)
        to->to[at + i] = to->before[at + i] + sum[i];
}

static void sum_slice(const struct comm *comm, size_t begin, size_t end)
{
    struct term terms[MAX_TERMS];
    float sum[TREE_BLOCK];
    int n_terms = collect(comm, terms);
    for (size_t at = begin; at < end; at += TREE_BLOCK) {
        size_t n = end - at < TREE_BLOCK ? end - at : TREE_BLOCK;
        tree_sum(terms, n_terms, at, n, sum);
        for (int r = 0; r < comm->size; r++)
            leave(&comm->rank[r].sum, at, n, sum);
    }
}

/* Waits until all have come to the call. */
static int meet(struct comm *comm, int rank, struct err *err)
{
    if (atomic_load(&comm->aborted))
        return err_set(err, ERR_CANCELLED, "another replica failed");
    return comm_wait(comm, rank, err);
}

int comm_sum(struct comm *comm, int rank, const struct comm_sum *sum, struct err *err)
{
    comm->rank[rank].sum = *sum;
    int rc = meet(comm, rank, err);
    if (rc != 0)
        return rc;
    assert(comm->rank[0].sum.count == sum->count);
    size_t begin, end;
    double begun = clock_seconds();
    slice_of(comm, rank, sum->count, &begin, &end);
    sum_slice(comm, begin, end);
    comm->rank[rank].times.summed += clock_seconds() - begun;
    return comm_wait(comm, rank, err);
}

static int all_reduce(struct collective *self, float *data, size_t count, struct err *err)
{
    struct rank *rank = (struct rank *)self;
    rank->own = (struct term){data, self->rank, self->rank + 1};
    const struct comm_sum sum = {.terms = &rank->own, .n_terms = 1, .to = data, .count = count};
    return comm_sum(rank->comm, self->rank, &sum, err);
}

static int started_by_all(const struct comm *comm)
{
    int n = MAX_STARTED;
    for (int r = 0; r < comm->size; r++) {
        int by_rank = atomic_load(&comm->rank[r].n_started);
        n = by_rank < n ? by_rank : n;
    }
    return n;
}

/* Slice `rank` of sum i. */
static void sum_started(struct comm *comm, int rank, int i)
{
    struct term terms[LIMIT_DEVICES];
    float sum[TREE_BLOCK];
    size_t count = comm->rank[rank].started[i].count, begin, end;
    slice_of(comm, rank, count, &begin, &end);
    for (int r = 0; r < comm->size; r++) {
        assert(comm->rank[r].started[i].count == count);
        terms[r] = (struct term){comm->rank[r].started[i].data, r, r + 1};
    }
    for (size_t at = begin; at < end; at += TREE_BLOCK) {
        size_t n = end - at < TREE_BLOCK ? end - at : TREE_BLOCK;
        tree_sum(terms, comm->size, at, n, sum);
        for (int r = 0; r < comm->size; r++)
            memcpy(comm->rank[r].started[i].data + at, sum, n * sizeof *sum);
    }
}

static void sum_what_is_there(struct comm *comm, struct rank *rank)
{
    double begun = clock_seconds();
    for (int n = started_by_all(comm); rank->n_summed < n; rank->n_summed++)
        sum_started(comm, rank->collective.rank, rank->n_summed);
    rank->times.summed += clock_seconds() - begun;
}

static int reduce_finish(struct collective *self, struct err *err)
{
    struct rank *rank = (struct rank *)self;
    struct comm *comm = rank->comm;
    int rc = meet(comm, self->rank, err);
    if (rc != 0)
        return rc;
    sum_what_is_there(comm, rank);
    rc = comm_wait(comm, self->rank, err);
    if (rc != 0)
        return rc;
    rank->n_summed = 0;
    atomic_store(&rank->n_started, 0);
    return comm_wait(comm, self->rank, err); /* nobody starts anew before all have begun at 0 */
}

static int reduce_start(struct collective *self, float *data, size_t count, struct err *err)
{
    struct rank *rank = (struct rank *)self;
    struct comm *comm = rank->comm;
    if (atomic_load(&comm->aborted))
        return err_set(err, ERR_CANCELLED, "another replica failed");
    int i = atomic_load(&rank->n_started);
    rank->started[i] = (struct started){data, count};
    atomic_store(&rank->n_started, i + 1);
    sum_what_is_there(comm, rank);
    return i + 1 < MAX_STARTED ? 0 : reduce_finish(self, err);
}

static int all_gather(struct collective *self, float *data, size_t count, size_t share,
                      struct err *err)
{
    struct rank *rank = (struct rank *)self;
    struct comm *comm = rank->comm;
    rank->data = data;
    int rc = meet(comm, self->rank, err);
    if (rc != 0)
        return rc;
    for (int r = 0; r < comm->size; r++) {
        size_t begin = (size_t)r * share;
        size_t n = begin >= count ? 0 : count - begin < share ? count - begin : share;
        if (r != self->rank)
            memcpy(data + begin, comm->rank[r].data + begin, n * sizeof *data);
    }
    return comm_wait(comm, self->rank, err);
}

static int sum(struct collective *self, double *value, struct err *err)
{
    struct rank *rank = (struct rank *)self;
    struct comm *comm = rank->comm;
    rank->number = *value;
    int rc = meet(comm, self->rank, err);
    if (rc != 0)
        return rc;
    double total = 0;
    for (int r = 0; r < comm->size; r++)
        total += comm->rank[r].number;
    rc = comm_wait(comm, self->rank,
                   err); /* nobody shows its next number before all have read this one */
    if (rc == 0)
        *value = total;
    return rc;
}

int comm_new(int size, struct comm **ret_comm, struct err *err)
{
    struct comm *comm = calloc(1, sizeof *comm + (size_t)size * sizeof comm->rank[0]);
    if (comm == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    comm->size = size;
    bell_init(&comm->bell);
    pthread_mutex_init(&comm->group_lock, NULL);
    for (int r = 0; r < size; r++) {
        comm->rank[r].collective = (struct collective){
            .rank = r,
            .size = size,
            .all_reduce = all_reduce,
            .reduce_start = reduce_start,
            .reduce_finish = reduce_finish,
            .all_gather = all_gather,
            .sum = sum,
        };
        comm->rank[r].comm = comm;
    }
    *ret_comm = comm;
    return 0;
}

void comm_free(struct comm *comm)
{
    if (comm == NULL)
        return;
    if (comm->group != NULL)
        comm->devices->group_free(comm->group);
    pthread_mutex_destroy(&comm->group_lock);
    bell_done(&comm->bell);
    free(comm);
}

/* The first to come makes it. */
static int find_group(struct comm *comm, const struct backend_collectives *devices, struct err *err)
{
    int rc = 0;
    pthread_mutex_lock(&comm->group_lock);
    comm->devices = devices;
    if (atomic_load(&comm->aborted))
        rc = err_set(err, ERR_CANCELLED, "another replica failed");
    else if (comm->group == NULL)
        rc = devices->group_new(comm->size, &comm->group, err);
    pthread_mutex_unlock(&comm->group_lock);
    return rc;
}

int comm_join(struct comm *comm, int rank, const struct backend *backend, struct device *device,
              struct err *err)
{
    if (backend->collectives == NULL)
        return 0;
    int rc = find_group(comm, backend->collectives, err);
    return rc != 0 ? rc
                   : backend->collectives->join(comm->group, rank, device, &comm->rank[rank].joined,
                                                err);
}

void comm_leave(struct comm *comm, int rank)
{
    if (comm->rank[rank].joined != NULL)
        comm->devices->leave(comm->rank[rank].joined);
    comm->rank[rank].joined = NULL;
}

struct collective *comm_collective(struct comm *comm, int rank)
{
    struct collective *joined = comm->rank[rank].joined;
    return joined != NULL ? joined : &comm->rank[rank].collective;
}

struct comm_times comm_times(struct comm *comm, int rank)
{
    struct comm_times times = comm->rank[rank].times;
    comm->rank[rank].times = (struct comm_times){0};
    return times;
}

void comm_abort(struct comm *comm)
{
    atomic_store(&comm->aborted, true);
    bell_ring(&comm->bell);
    pthread_mutex_lock(&comm->group_lock);
    if (comm->group != NULL)
        comm->devices->group_abort(comm->group);
    pthread_mutex_unlock(&comm->group_lock);
}
