/* queue.c: the live jobs as the scheduler sees them, and what follows from its decisions. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/daemon.h"

const char *jobs_why(const struct live *live, char buf[static 64])
{
    if (live == NULL || !live->waits)
        return NULL;
    return sched_reason(&live->why, buf);
}

/* The scheduler's values, as of one moment. */
struct view {
    struct sched_box box;
    struct sched_run *runs;
    struct sched_user *users;
    size_t n_users;
    struct sched_job *queue; /* with room for one more */
    size_t n;
    struct sched_head head;
    int64_t now_ns;
};

static void view_done(struct view *view)
{
    free(view->runs);
    free(view->users);
    free(view->queue);
}

/* Jobs that come after each other are often of one user: the newest is looked at first. */
static size_t user_of(struct view *view, const struct daemon *daemon, uid_t uid)
{
    for (size_t i = view->n_users; i-- > 0;)
        if (view->users[i].uid == uid)
            return i;
    view->users[view->n_users] =
        (struct sched_user){.uid = uid, .usage = usage_of(daemon, uid, view->now_ns)};
    return view->n_users++;
}

/* How long a job holds its devices at most, until it has been killed. */
static double limit_s(const struct daemon *daemon, const struct job_record *record)
{
    return record->time_limit_s > 0 ? (double)(record->time_limit_s + daemon->config->grace_s)
                                    : INFINITY;
}

static void add_run(struct view *view, const struct daemon *daemon, const struct job_record *record)
{
    struct sched_user *user = &view->users[user_of(view, daemon, record->uid)];
    int64_t from_ns = record->started_ns != 0 ? record->started_ns : view->now_ns;
    user->usage += usage_running(daemon, record, view->now_ns);
    user->devices += record->devices.n;
    view->runs[view->box.n_runs++] =
        (struct sched_run){devset_of(&daemon->devices, &record->devices),
                           (double)from_ns / 1e9 + limit_s(daemon, record)};
}

static void add_queued(struct view *view, const struct daemon *daemon,
                       const struct job_record *record, int64_t id, int64_t after)
{
    view->queue[view->n++] = (struct sched_job){
        .id = id,
        .user = user_of(view, daemon, record->uid),
        .priority = record->priority,
        .after = after,
        .wish = devwish_of(&daemon->devices, &record->want),
        .limit_s = limit_s(daemon, record),
    };
}

static int view_init(struct view *view, struct daemon *daemon, struct err *err)
{
    const struct jobs *jobs = &daemon->jobs;
    *view = (struct view){
        .queue = calloc(jobs->n + 1, sizeof *view->queue),
        .runs = calloc(jobs->n + 1, sizeof *view->runs),
        .users = calloc(jobs->n + 1, sizeof *view->users),
        .now_ns = daemon->runner->now_ns(daemon->runner),
    };
    if (view->queue == NULL || view->runs == NULL || view->users == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    view->box.devices = &daemon->devices;
    view->box.drained = drain_set(daemon);
    view->box.free = devset_all(&daemon->devices) & ~jobs->assigned & ~view->box.drained;
    view->box.runs = view->runs;
    view->box.now_s = (double)view->now_ns / 1e9;
    view->box.user_devices = (size_t)daemon->config->user_devices;
    for (size_t i = 0; i < jobs->n; i++) {
        const struct live *live = jobs->live[i];
        if (live->record->state == STATE_QUEUED)
            add_queued(view, daemon, live->record, live->record->id,
                       live->after.n > 0 ? live->after.id[0] : 0);
        else if (jobs_holds(live))
            add_run(view, daemon, live->record);
    }
    return 0;
}

static int view_decide(struct view *view, struct err *err)
{
    return sched_decide(&view->box, view->users, view->n_users, view->queue, view->n, &view->head,
                        err);
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
    struct err err = ERR_INIT;
    struct view view;
    if (daemon->stopping || daemon->jobs.n == 0)
        return;
    if (view_init(&view, daemon, &err) != 0 || view_decide(&view, &err) != 0)
        daemon_fail(daemon, &err);
    for (size_t i = 0; err.code == 0 && i < view.n; i++) {
        struct live *live = jobs_find(daemon, view.queue[i].id);
        live->waits = !view.queue[i].start;
        live->why = view.queue[i].why;
        if (view.queue[i].start)
            start(daemon, live, view.queue[i].got);
    }
    view_done(&view);
}

int jobs_forecast(struct daemon *daemon, const struct job_record *record, char buf[static 64],
                  const char **ret_why, struct err *err)
{
    struct view view;
    int rc = view_init(&view, daemon, err);
    if (rc == 0) {
        add_queued(&view, daemon, record, INT64_MAX, 0);
        rc = view_decide(&view, err);
    }
    if (rc == 0) {
        const struct sched_job *job = &view.queue[view.n - 1];
        *ret_why = job->start ? NULL : sched_reason(&job->why, buf);
    }
    view_done(&view);
    return rc;
}
