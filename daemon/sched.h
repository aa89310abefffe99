/* sched.h: who starts next, on which devices, and why the others wait. PURE.
 *
 * First come, first served: jobs on disjoint device sets run side by side, but a job that does not
 * fit makes all behind it wait, so that a wide job is never starved by narrow ones.
 */
#ifndef DAEMON_SCHED_H
#define DAEMON_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/devset.h"

struct sched_job {
    int64_t id;
    const struct devlist *want;
    /* The answer: */
    bool start;
    struct devlist got; /* with `start`, in the order of `want` */
    char reason[64];    /* without: "waiting for 2 of 4 devices", "behind job 17" */
};

/* Decides for the `n` queued jobs, in the queue's order. `free`: devices of no live job. */
void sched_decide(const struct devlist *devices, devset free, struct sched_job *jobs, size_t n);

#endif
