/* sched.h: who starts next, on which devices, and why the others wait. PURE.
 *
 * The larger priority first, then first come, first served: jobs on disjoint device sets run side
 * by side, but a job that does not fit makes all behind it wait, so that a wide job is never
 * starved by narrow ones.
 */
#ifndef DAEMON_SCHED_H
#define DAEMON_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/devset.h"

/* Why a job has to wait: for another's end, behind another, or for devices. */
struct sched_why {
    int64_t after;    /* the job that has to complete first, or 0 */
    int64_t behind;   /* the job at the head, or 0 */
    bool priority;    /* which is of a larger one */
    size_t available; /* of the devices that it wants; behind = 0 */
};

struct sched_job {
    int64_t id;
    int64_t priority;
    int64_t after; /* a job that has to complete first, or 0 */
    const struct devlist *want;
    /* The answer: */
    bool start;
    devset got;           /* with `start`; devset_pick from it gives the list in its order */
    struct sched_why why; /* without */
};

/* Decides for the `n` queued jobs and brings them in the queue's order. `free`: devices of no live
 * job. */
void sched_decide(const struct devlist *devices, devset free, struct sched_job *jobs, size_t n);

/* "waiting for 2 of 4 devices" (missing of wanted), "behind job 17", "after job 3"; returns `buf`.
 */
const char *sched_reason(const struct sched_why *why, const struct devlist *want,
                         char buf[static 64]);

#endif
