/* sched.c: see sched.h. */
#include "daemon/sched.h"

#include <inttypes.h>
#include <stdio.h>

void sched_decide(const struct devlist *devices, devset free, struct sched_job *jobs, size_t n)
{
    const struct sched_job *head = NULL; /* the first that has to wait */
    for (size_t i = 0; i < n; i++) {
        struct sched_job *job = &jobs[i];
        job->start = head == NULL && devset_pick(devices, job->want, free, &job->got);
        if (job->start) {
            job->reason[0] = '\0';
            free &= ~devset_of(devices, &job->got);
        } else if (head == NULL) {
            head = job;
            snprintf(job->reason, sizeof job->reason, "waiting for %zu of %zu device%s",
                     devset_available(devices, job->want, free), job->want->n,
                     job->want->n == 1 ? "" : "s");
        } else {
            snprintf(job->reason, sizeof job->reason, "behind job %" PRId64, head->id);
        }
    }
}
