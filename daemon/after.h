/* after.h: jobs that run only after others have completed (`queue.after`). The loop's thread, but
 * for after_read.
 *
 * A job that one waits for either completes, or ends in another way: then the one that waits is
 * cancelled, held or not, and what waits for that one in turn. Ends count when they are committed.
 */
#ifndef DAEMON_AFTER_H
#define DAEMON_AFTER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"
#include "proto/state.h"

struct daemon;
struct live;
struct store;

/* What a job still waits for. Zero-initialise. */
struct after {
    size_t n;
    int64_t *id;
    int64_t broken; /* one that ended without completing, or 0 */
    enum job_state how;
};

/* Looks up the jobs of a list of ids, NULL for none; what `after` held before is freed. The store's
 * thread, or before it runs. Errors: ERR_JOB_INVALID with the path of an id that there is no job
 * of; the store's. */
int after_read(struct after *after, struct store *store, const json_t *ids, struct err *err);
void after_clear(struct after *after);

/* Cancels a job that waits in vain. */
void after_settle(struct daemon *daemon, struct live *live);
/* A job has ended in this state: settles those that wait for it. */
void after_ended(struct daemon *daemon, int64_t id, enum job_state state);

#endif
