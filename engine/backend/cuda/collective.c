/* collective.c: GPUs that sum among themselves, by NCCL: a group is one NCCL clique, a collective
 * one rank of it, enqueued on its device's communication stream.
 *
 * NCCL's calls do not block: a join that waits for others sees an abort, so a device that fails
 * never leaves the others waiting.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "engine/backend/cuda/cuda.h"

struct member {
    struct collective collective; /* first: the public view */
    struct group *group;
    struct device *device;
    ncclComm_t comm; /* NULL: not joined, or aborted */
};

struct group {
    int size;
    ncclUniqueId id;
    atomic_bool aborted;
    pthread_mutex_t lock; /* of the members' comm */
    struct member members[LIMIT_DEVICES];
};

static int group_new(int size, struct group **ret_group, struct err *err)
{
    struct group *group = calloc(1, sizeof *group);
    if (!group)
        return err_set(err, ERR_NOMEM, "out of memory");
    int rc = status_nccl(ncclGetUniqueId(&group->id), "the GPUs' group", err);
    if (rc) {
        free(group);
        return rc;
    }
    group->size = size;
    pthread_mutex_init(&group->lock, NULL);
    *ret_group = group;
    return 0;
}

static void group_free(struct group *group)
{
    pthread_mutex_destroy(&group->lock);
    free(group);
}

static void group_abort(struct group *group)
{
    if (atomic_exchange(&group->aborted, true))
        return;
    pthread_mutex_lock(&group->lock);
    for (int r = 0; r < group->size; r++) {
        if (group->members[r].comm)
            ncclCommAbort(group->members[r].comm);
        group->members[r].comm = NULL;
    }
    pthread_mutex_unlock(&group->lock);
}

/* Whether what the rank began is complete; an error where it failed, or nobody waits any more. */
static int ask(struct member *member, const char *what, bool *ret_complete, struct err *err)
{
    ncclResult_t state = ncclSuccess;
    int rc = 0;
    pthread_mutex_lock(&member->group->lock);
    if (!member->comm || atomic_load(&member->group->aborted))
        rc = err_set(err, ERR_CANCELLED, "another replica failed");
    else
        rc = status_nccl(ncclCommGetAsyncError(member->comm, &state), what, err);
    pthread_mutex_unlock(&member->group->lock);
    *ret_complete = state == ncclSuccess;
    return rc ? rc : status_nccl(state, what, err);
}

static int settle(struct member *member, const char *what, struct err *err)
{
    bool complete = false;
    int rc = ask(member, what, &complete, err);
    while (rc == 0 && !complete) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        rc = ask(member, what, &complete, err);
    }
    return rc;
}

/* The result of a call of NCCL's, and what becomes of it. */
static int finish(struct member *member, ncclResult_t result, const char *what, struct err *err)
{
    int rc = status_nccl(result, what, err);
    return rc ? rc : settle(member, what, err);
}

static const char sum_what[] = "the sum over the GPUs", gather_what[] = "the GPUs' exchange";

static int reduce_start(struct collective *self, float *data, size_t count, struct err *err)
{
    struct member *member = (struct member *)self;
    struct device *device = member->device;
    int rc = cuda_order(device, device->compute, device->communication, sum_what, err);
    return rc ? rc
              : finish(member,
                       ncclAllReduce(data, data, count, ncclFloat, ncclSum, member->comm,
                                     device->communication),
                       sum_what, err);
}

static int reduce_finish(struct collective *self, struct err *err)
{
    struct device *device = ((struct member *)self)->device;
    return cuda_order(device, device->communication, device->compute, sum_what, err);
}

static int all_reduce(struct collective *self, float *data, size_t count, struct err *err)
{
    int rc = reduce_start(self, data, count, err);
    return rc ? rc : reduce_finish(self, err);
}

/* A broadcast a rank: parts may be short, or empty. */
static ncclResult_t broadcast_parts(struct member *member, float *data, size_t count, size_t share)
{
    ncclResult_t result = ncclGroupStart();
    for (int r = 0; r < member->collective.size && result == ncclSuccess; r++) {
        size_t begin = (size_t)r * share;
        size_t n = begin >= count ? 0 : count - begin < share ? count - begin : share;
        if (n > 0)
            result = ncclBroadcast(data + begin, data + begin, n, ncclFloat, r, member->comm,
                                   member->device->communication);
        if (result == ncclInProgress)
            result = ncclSuccess;
    }
    ncclResult_t ended = ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}

static int all_gather(struct collective *self, float *data, size_t count, size_t share,
                      struct err *err)
{
    struct member *member = (struct member *)self;
    struct device *device = member->device;
    int rc = cuda_order(device, device->compute, device->communication, gather_what, err);
    if (rc == 0)
        rc = finish(member, broadcast_parts(member, data, count, share), gather_what, err);
    return rc ? rc : cuda_order(device, device->communication, device->compute, gather_what, err);
}

/* NCCL's own, which others may abort from here on. */
static int begin(struct member *member, int rank, struct err *err)
{
    struct group *group = member->group;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    CUDA_TRY(cudaSetDevice(member->device->index), "the GPUs' group");
    pthread_mutex_lock(&group->lock);
    int rc = atomic_load(&group->aborted)
                 ? err_set(err, ERR_CANCELLED, "another replica failed")
                 : status_nccl(
                       ncclCommInitRankConfig(&member->comm, group->size, group->id, rank, &config),
                       "the GPUs' group", err);
    pthread_mutex_unlock(&group->lock);
    return rc;
}

static int join(struct group *group, int rank, struct device *device,
                struct collective **ret_collective, struct err *err)
{
    struct member *member = &group->members[rank];
    member->collective = (struct collective){
        .rank = rank,
        .size = group->size,
        .all_reduce = all_reduce,
        .reduce_start = reduce_start,
        .reduce_finish = reduce_finish,
        .all_gather = all_gather,
    };
    member->group = group;
    member->device = device;
    int rc = begin(member, rank, err);
    if (rc == 0)
        rc = settle(member, "the GPUs' group", err);
    if (rc == 0)
        *ret_collective = &member->collective;
    return rc;
}

/* What is enqueued is done first. A rank leaves alone: aborting is the way that waits for nobody.
 */
static void leave(struct collective *collective)
{
    struct member *member = (struct member *)collective;
    cudaStreamSynchronize(member->device->communication);
    pthread_mutex_lock(&member->group->lock);
    if (member->comm)
        ncclCommAbort(member->comm);
    member->comm = NULL;
    pthread_mutex_unlock(&member->group->lock);
}

const struct backend_collectives cuda_collectives = {
    .group_new = group_new,
    .group_free = group_free,
    .group_abort = group_abort,
    .join = join,
    .leave = leave,
};
