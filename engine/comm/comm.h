/* comm.h: collectives between the replicas of one process: in shared memory, or by the devices
 * themselves where their backend has such.
 *
 * Every call blocks until all ranks have made it. The result's bits do not depend on timing: the
 * order of addition is tree.h's, the ranks its leaves. An abort wakes everybody; from then on each
 * call fails with ERR_CANCELLED.
 */
#ifndef ENGINE_COMM_COMM_H
#define ENGINE_COMM_COMM_H

#include "engine/backend/backend.h"
#include "engine/comm/tree.h"

struct comm;

int comm_new(int size, struct comm **ret_comm, struct err *err);
void comm_free(struct comm *comm);
/* Where the backend's devices sum among themselves, the rank's collective is theirs from here on.
 * On the device's thread, all ranks at once; blocks. Fails as backend_collectives.join. */
int comm_join(struct comm *comm, int rank, const struct backend *backend, struct device *device,
              struct err *err);
void comm_leave(struct comm *comm, int rank); /* ahead of the device's close; joined or not */
/* The view of one rank; lives as long as the comm, or until it joins or leaves. */
struct collective *comm_collective(struct comm *comm, int rank);
/* Where leaves are not ranks: `terms` of all ranks, one rank's behind the other's, are a whole tree
 * from leaf 0 on; a rank may have none. Every rank gets before + their sum in `to` (before NULL:
 * the sum), which may be `before` or one of its own terms. Blocks, fails as all_reduce. */
struct comm_sum {
    const struct term *terms;
    int n_terms;
    const float *before;
    float *to;
    size_t count;
};
int comm_sum(struct comm *comm, int rank, const struct comm_sum *sum, struct err *err);
/* What a rank spent since it was asked last, in seconds. Not while it is in a call. */
struct comm_times {
    double summed; /* reading and writing what is summed */
    double waited; /* for other ranks */
};
struct comm_times comm_times(struct comm *comm, int rank);
/* Any thread, any number of times. */
void comm_abort(struct comm *comm);

#endif
