/* sched.c: see sched.h. */
#include "daemon/sched.h"

#include <inttypes.h>
#include <stdio.h>

void sched_decide(const struct devlist *devices, devset free, struct sched_job *jobs, size_t n)
{
    int64_t head = 0; /* the first that has to wait */
    for (size_t i = 0; i < n; i++) {
        struct sched_job *job = &jobs[i];
        struct devlist got;
        job->why = (struct sched_why){.behind = head};
        job->start = head == 0 && devset_pick(devices, job->want, free, &got);
        if (job->start) {
            job->got = devset_of(devices, &got);
            free &= ~job->got;
        } else if (head == 0) {
            head = job->id;
            job->why.available = devset_available(devices, job->want, free);
        }
    }
}

const char *sched_reason(const struct sched_why *why, const struct devlist *want,
                         char buf[static 64])
{
    if (why->behind != 0)
        snprintf(buf, 64, "behind job %" PRId64, why->behind);
    else
        snprintf(buf, 64, "waiting for %zu of %zu device%s", want->n - why->available, want->n,
                 want->n == 1 ? "" : "s");
    return buf;
}
