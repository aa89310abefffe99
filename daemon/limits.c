/* limits.c: see limits.h. */
#include "daemon/limits.h"

#include <stdio.h>

#include "daemon/daemon.h"
#include "proto/job_queue.h"

enum { NS_PER_MS = 1000000 };

/* How long the job may still run, at most INT32_MAX: a wall clock that is set meanwhile is then
 * noticed in time. */
static int64_t left_ms(struct daemon *daemon, const struct job_record *record)
{
    int64_t ran_ns = daemon->runner->now_ns(daemon->runner) - record->started_ns;
    int64_t left_ns = record->time_limit_s * 1000 * NS_PER_MS - ran_ns;
    int64_t left = left_ns / NS_PER_MS + (left_ns % NS_PER_MS > 0);
    return left < INT32_MAX ? left : INT32_MAX;
}

static bool is_limited(const struct live *live)
{
    return live->record->state == STATE_RUNNING && live->record->time_limit_s > 0;
}

static void look_in(struct daemon *daemon, int64_t ms)
{
    int64_t at = daemon->runner->clock_ms(daemon->runner) + (ms > 0 ? ms : 0);
    if (daemon->jobs.limit_at_ms == 0 || at < daemon->jobs.limit_at_ms)
        daemon->jobs.limit_at_ms = at;
}

void limits_watch(struct daemon *daemon, const struct live *live)
{
    if (!is_limited(live))
        return;
    look_in(daemon, left_ms(daemon, live->record));
    daemon_set_alarm(daemon);
}

static void time_out(struct daemon *daemon, struct live *live)
{
    char reason[96], limit[JOB_DURATION_SIZE];
    snprintf(reason, sizeof reason, "its time limit of %s is reached",
             job_duration_format(live->record->time_limit_s, limit));
    live->record->stop = STOP_TIME_LIMIT;
    jobs_move(daemon, live, STATE_STOPPING, NULL, reason);
}

void limits_expire(struct daemon *daemon)
{
    struct jobs *jobs = &daemon->jobs;
    if (jobs->limit_at_ms == 0 || daemon->runner->clock_ms(daemon->runner) < jobs->limit_at_ms)
        return;
    jobs->limit_at_ms = 0;
    for (size_t i = 0; i < jobs->n; i++) {
        if (!is_limited(jobs->live[i]))
            continue;
        int64_t left = left_ms(daemon, jobs->live[i]->record);
        if (left <= 0)
            time_out(daemon, jobs->live[i]);
        else
            look_in(daemon, left);
    }
}

int64_t limits_next_ms(const struct daemon *daemon)
{
    return daemon->jobs.limit_at_ms != 0 ? daemon->jobs.limit_at_ms : INT64_MAX;
}
