/* recover.c: see recover.h. The runner's answers come as jobs.c's ordinary events: an end that was
 * missed is an end, a job that still runs goes on, one that never ran is queued again. */
#include "daemon/recover.h"

#include "daemon/daemon.h"
#include "daemon/limits.h"
#include "daemon/log.h"
#include "daemon/statedir.h"
#include "daemon/store.h"

#include <limits.h>

static int load(void *arg, struct job_record *record, struct err *err)
{
    struct live *live;
    struct daemon *daemon = arg;
    int rc = jobs_add(daemon, record, &live, err);
    if (rc != 0)
        job_record_free(record);
    return rc != 0 ? rc : after_read(&live->after, daemon->opened, record->after, err);
}

int recover_load(struct daemon *daemon, struct err *err)
{
    return store_each_unfinished(daemon->opened, load, daemon, err);
}

/* A job that waits stays, unless what it wants is not in this machine any more. */
static void adopt_waiting(struct daemon *daemon, struct live *live)
{
    struct devlist got;
    struct err err = ERR_INIT;
    char want[LIMIT_DEVICES * 32], have[LIMIT_DEVICES * 32];
    const struct devlist *wanted = &live->record->want;
    if (devset_pick(&daemon->devices, wanted, devset_all(&daemon->devices), &got)) {
        after_settle(daemon, live);
        return;
    }
    err_set(&err, ERR_DEVICE_UNKNOWN, "it wants %s, and there is %s now",
            devlist_format(wanted, want, sizeof want),
            devlist_format(&daemon->devices, have, sizeof have));
    jobs_give_up(daemon, live, STATE_FAILED, &err);
}

static void adopt_started(struct daemon *daemon, struct live *live)
{
    char dir[PATH_MAX];
    struct runner *runner = daemon->runner;
    const struct job_record *record = live->record;
    live->adopted = live->opened = true;
    daemon->jobs.assigned |= devset_of(&daemon->devices, &record->devices);
    log_info("job %lld: taken up again (%s)", (long long)record->id, state_name(record->state));
    runner->adopt(runner, record->id,
                  statedir_job(daemon->config->state, record->id, NULL, dir, sizeof dir),
                  record->report_offset);
    if (record->state == STATE_STOPPING)
        runner->stop(runner, record->id);
    limits_watch(daemon, live);
}

void recover_adopt(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->jobs.n && !daemon->stopping; i++) {
        struct live *live = daemon->jobs.live[i];
        if (live->record->state == STATE_QUEUED || live->record->state == STATE_HELD)
            adopt_waiting(daemon, live);
        else
            adopt_started(daemon, live);
    }
    jobs_schedule(daemon);
}
