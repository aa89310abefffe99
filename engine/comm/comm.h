/* comm.h: collectives between the replicas of one process, in shared memory (a NCCL one will stand
 * beside it).
 *
 * Every call blocks until all ranks have made it. The result's bits do not depend on timing: rank
 * order is the order of addition. An abort wakes everybody; from then on each call fails with
 * ERR_CANCELLED.
 */
#ifndef ENGINE_COMM_COMM_H
#define ENGINE_COMM_COMM_H

#include "engine/backend/backend.h"

struct comm;

int comm_new(int size, struct comm **ret_comm, struct err *err);
void comm_free(struct comm *comm);
/* The view of one rank; lives as long as the comm. */
struct collective *comm_collective(struct comm *comm, int rank);
/* Any thread, any number of times. */
void comm_abort(struct comm *comm);

#endif
