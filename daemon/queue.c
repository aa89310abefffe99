/* queue.c: the live jobs as the scheduler sees them, and what follows from its decisions. */
#include <assert.h>
#include <stdlib.h>

#include "daemon/daemon.h"

const char *jobs_why(const struct live *live, char buf[static 64])
{
    if (live == NULL || !live->waits)
        return NULL;
    return sched_reason(&live->why, &live->record->want, buf);
}

/* The queued jobs, and room for one more; NULL without memory. */
static struct sched_job *read_queue(const struct daemon *daemon, size_t *ret_n)
{
    const struct jobs *jobs = &daemon->jobs;
    struct sched_job *queue = calloc(jobs->n + 1, sizeof *queue);
    size_t n = 0;
    for (size_t i = 0; queue != NULL && i < jobs->n; i++) {
        const struct live *live = jobs->live[i];
        if (live->record->state == STATE_QUEUED)
            queue[n++] = (struct sched_job){
                .id = live->record->id,
                .priority = live->record->priority,
                .after = live->after.n > 0 ? live->after.id[0] : 0,
                .want = &live->record->want,
            };
    }
    *ret_n = n;
    return queue;
}

static devset free_devices(const struct daemon *daemon)
{
    return devset_all(&daemon->devices) & ~daemon->jobs.assigned;
}

static void start(struct daemon *daemon, struct live *live, devset got)
{
    struct job_record *record = live->record;
    bool fits = devset_pick(&daemon->devices, &record->want, got, &record->devices);
    assert(fits);
    (void)fits;
    jobs_move(daemon, live, STATE_STARTING, NULL, NULL);
}

void jobs_schedule(struct daemon *daemon)
{
    size_t n;
    if (daemon->stopping || daemon->jobs.n == 0)
        return;
    struct sched_job *queue = read_queue(daemon, &n);
    if (queue == NULL) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_NOMEM, "out of memory");
        daemon_fail(daemon, &err);
        return;
    }
    sched_decide(&daemon->devices, free_devices(daemon), queue, n);
    for (size_t i = 0; i < n; i++) {
        struct live *live = jobs_find(daemon, queue[i].id);
        live->waits = !queue[i].start;
        live->why = queue[i].why;
        if (queue[i].start)
            start(daemon, live, queue[i].got);
    }
    free(queue);
}

int jobs_forecast(struct daemon *daemon, const struct job_record *record, char buf[static 64],
                  const char **ret_why, struct err *err)
{
    size_t n;
    struct sched_job *queue = read_queue(daemon, &n);
    if (queue == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    queue[n++] =
        (struct sched_job){.id = INT64_MAX, .priority = record->priority, .want = &record->want};
    sched_decide(&daemon->devices, free_devices(daemon), queue, n);
    const struct sched_job *job = queue;
    while (job->id != INT64_MAX)
        job++;
    *ret_why = job->start ? NULL : sched_reason(&job->why, job->want, buf);
    free(queue);
    return 0;
}
