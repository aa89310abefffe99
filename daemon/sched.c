/* sched.c: see sched.h. */
#include "daemon/sched.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The larger priority first, then the older. */
static int compare(const void *a, const void *b)
{
    const struct sched_job *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

void sched_decide(const struct devlist *devices, devset free, struct sched_job *jobs, size_t n)
{
    const struct sched_job *head = NULL; /* the first that has to wait for devices */
    qsort(jobs, n, sizeof *jobs, compare);
    for (size_t i = 0; i < n; i++) {
        struct sched_job *job = &jobs[i];
        struct devlist got;
        job->why = (struct sched_why){.after = job->after};
        job->start = job->after == 0 && head == NULL && devset_pick(devices, job->want, free, &got);
        if (job->start) {
            job->got = devset_of(devices, &got);
            free &= ~job->got;
        } else if (job->after == 0 && head == NULL) {
            head = job;
            job->why.available = devset_available(devices, job->want, free);
        } else if (job->after == 0) {
            job->why.behind = head->id;
            job->why.priority = head->priority > job->priority;
        }
    }
}

const char *sched_reason(const struct sched_why *why, const struct devlist *want,
                         char buf[static 64])
{
    if (why->after != 0)
        snprintf(buf, 64, "after job %" PRId64, why->after);
    else if (why->behind != 0)
        snprintf(buf, 64, "behind job %" PRId64 "%s", why->behind,
                 why->priority ? " (priority)" : "");
    else
        snprintf(buf, 64, "waiting for %zu of %zu device%s", want->n - why->available, want->n,
                 want->n == 1 ? "" : "s");
    return buf;
}
