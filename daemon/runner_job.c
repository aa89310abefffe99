/* runner_job.c: the life of one job as its runner sees it.
 *
 * Each job is in one of these phases:
 *
 *     preparing ─► watched ─► ending ─► closing
 *       │   ▲ └─────────────►   ▲          ▲
 *       ▼   │                              │
 *     waiting                              │
 *       └──────────────────────────────────┘ (from every phase, when the runner is closed)
 *
 *     preparing  the thread pool starts a shim (launch.h) or looks for one (evidence.h)
 *     waiting    a shim lives but has not said who it is: look again in a moment
 *     watched    its pidfd and its directory (inotify) are watched
 *     ending     it is gone: what it left is read to the end, then `ended` or `gone`
 *
 * Everything that a directory can tell is read anew at each tick, so a merged or lost notification
 * only delays. A tick is bounded; what is left continues on the next turn of the loop.
 */
#define _GNU_SOURCE
#include "daemon/runner_job.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FILLS_A_TICK = 16,  /* of 64 KiB of reports each */
    LOOK_AGAIN_MS = 20, /* at first, then twice as long each time */
    LOOK_AGAIN_MAX_MS = 1000,
};

static const bool legal[PHASE_COUNT][PHASE_COUNT] = {
    [PREPARING] = {[WAITING] = true, [WATCHED] = true, [ENDING] = true, [CLOSING] = true},
    [WAITING] = {[PREPARING] = true, [CLOSING] = true},
    [WATCHED] = {[ENDING] = true, [CLOSING] = true},
    [ENDING] = {[CLOSING] = true},
};

static void move(struct runner_job *job, enum runner_phase phase)
{
    assert(legal[job->phase][phase]);
    job->phase = phase;
}

struct runner_job *runner_job_find(struct runner_uv *runner, int64_t id)
{
    struct runner_job *job = runner->jobs;
    while (job != NULL && job->id != id)
        job = job->next;
    return job;
}

static void job_done(struct runner_job *job)
{
    free(job->spec);
    free(job->dir);
    free(job);
}

static struct runner_job *job_new(struct runner_uv *runner, int64_t id, const char *dir,
                                  int64_t offset)
{
    struct runner_job *job = calloc(1, sizeof *job);
    if (job == NULL || (job->dir = strdup(dir)) == NULL) {
        free(job);
        return NULL;
    }
    job->runner = runner;
    job->id = id;
    job->pidfd = job->watch = -1;
    job->again_ms = LOOK_AGAIN_MS;
    tail_init(&job->tail, offset);
    job->work.data = job->timer.data = job->poll.data = job;
    return job;
}

static void on_job_close(uv_handle_t *handle)
{
    struct runner_job *job = handle->data;
    if (--job->n_handles > 0)
        return;
    struct runner_uv *runner = job->runner;
    if (job->pidfd >= 0)
        close(job->pidfd);
    tail_done(&job->tail);
    job_done(job);
    runner_uv_release(runner);
}

void runner_job_close(struct runner_job *job)
{
    struct runner_uv *runner = job->runner;
    move(job, CLOSING);
    for (struct runner_job **at = &runner->jobs; *at != NULL; at = &(*at)->next) {
        if (*at == job) {
            *at = job->next;
            break;
        }
    }
    if (job->watch >= 0)
        inotify_rm_watch(runner->inotify_fd, job->watch);
    uv_close((uv_handle_t *)&job->timer, on_job_close);
    if (job->n_handles > 1)
        uv_close((uv_handle_t *)&job->poll, on_job_close);
}

static void job_gone(struct runner_job *job, bool ran, const struct err *why)
{
    struct runner_uv *runner = job->runner;
    int64_t id = job->id;
    runner_job_close(job);
    runner->base.events->gone(runner->base.owner, id, ran, why);
}

static void path_in(const struct runner_job *job, const char *name, char *buf, size_t size)
{
    snprintf(buf, size, "%s/%s", job->dir, name);
}

static void tell_started(struct runner_job *job)
{
    struct runner_uv *runner = job->runner;
    if (job->started)
        return;
    job->started = true;
    runner->base.events->started(runner->base.owner, job->id);
}

static void look_for_start(struct runner_job *job)
{
    char path[4096 + 32];
    path_in(job, "worker.json", path, sizeof path);
    if (!job->started && access(path, F_OK) == 0)
        tell_started(job);
}

static void look_at_log(struct runner_job *job)
{
    struct runner_uv *runner = job->runner;
    char path[4096 + 32];
    struct stat st;
    path_in(job, "log", path, sizeof path);
    if (stat(path, &st) < 0 || st.st_size == job->log_size)
        return;
    job->log_size = st.st_size;
    runner->base.events->log_grew(runner->base.owner, job->id, job->log_size);
}

/* True: there may be more than one tick delivers. */
static bool deliver_reports(struct runner_job *job)
{
    struct runner_uv *runner = job->runner;
    char path[4096 + 32];
    path_in(job, "report.jsonl", path, sizeof path);
    for (int i = 0; i < FILLS_A_TICK; i++) {
        const char *line;
        size_t size;
        if (!tail_fill(&job->tail, path, &runner->buffer))
            return false;
        while (job->phase != CLOSING && tail_next(&job->tail, &runner->buffer, &line, &size)) {
            tell_started(job); /* even if the disk was too full for worker.json */
            if (job->phase != CLOSING)
                runner->base.events->report(runner->base.owner, job->id, line, size,
                                            job->tail.offset);
        }
        if (job->phase == CLOSING)
            return false;
    }
    return true;
}

static void on_job_timer(uv_timer_t *timer)
{
    runner_job_tick(timer->data);
}

/* The shim is gone and all it wrote is delivered. */
static void conclude(struct runner_job *job)
{
    struct runner_uv *runner = job->runner;
    struct runner_exit record;
    struct err err = ERR_INIT;
    int64_t id = job->id;
    if (job->child > 0)
        waitpid(job->child, NULL, WNOHANG);
    int rc = job->tail.is_short ? ERR_NOMEM : evidence_exit(job->dir, &record, &err);
    if (rc == ERR_NOMEM) { /* it is there: it will be read when there are memory and descriptors */
        uv_timer_start(&job->timer, on_job_timer, LOOK_AGAIN_MAX_MS, 0);
        return;
    }
    bool ran = rc != ERR_NOT_FOUND || evidence_ran(job->dir);
    if (rc == ERR_NOT_FOUND)
        err_set(&err, ERR_IO,
                ran ? "the job's keeper (traind-shim) ended without a record of the job's end"
                    : "the job's keeper (traind-shim) ended before it started the job");
    if (rc != 0) {
        job_gone(job, ran, &err);
        return;
    }
    runner_job_close(job);
    runner->base.events->ended(runner->base.owner, id, &record);
}

static void on_shim_ended(uv_poll_t *poll, int status, int events)
{
    struct runner_job *job = poll->data;
    (void)status;
    (void)events;
    uv_poll_stop(poll);
    move(job, ENDING);
    runner_job_tick(job);
}

static void signal_shim(struct runner_job *job)
{
    if (job->pidfd >= 0 && syscall(SYS_pidfd_send_signal, job->pidfd, SIGTERM, NULL, 0) == 0)
        job->stop_asked = false;
}

/* False: there is no room to watch one more process. */
static bool watch_shim(struct runner_job *job)
{
    if (uv_poll_init(job->runner->loop, &job->poll, job->pidfd) != 0)
        return false;
    job->n_handles++;
    uv_poll_start(&job->poll, UV_READABLE, on_shim_ended);
    return true;
}

/* Without a watch for its directory (the user's limit of inotify is reached) a job is still looked
 * at when it ends. */
static void enter_watched(struct runner_job *job)
{
    move(job, WATCHED);
    job->watch = inotify_add_watch(job->runner->inotify_fd, job->dir,
                                   IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR);
    if (job->stop_asked)
        signal_shim(job);
    runner_job_tick(job);
}

static void enter_waiting(struct runner_job *job)
{
    move(job, WAITING);
    if (job->pidfd >= 0)
        close(job->pidfd);
    job->pidfd = -1;
    uv_timer_start(&job->timer, on_job_timer, (uint64_t)job->again_ms, 0);
    if (job->again_ms < LOOK_AGAIN_MAX_MS)
        job->again_ms *= 2;
}

static void on_pool(uv_work_t *work)
{
    struct runner_job *job = work->data;
    struct runner_exit ignored;
    job->err.code = 0;
    job->evidence = EVIDENCE_HIDDEN; /* also of a shim just started that cannot be watched yet */
    job->launch = (struct launch){.pid = 0, .pidfd = -1};
    if (job->spec != NULL) {
        launch_shim(job->runner->shim, job->spec, &job->launch, &job->err);
        return;
    }
    job->evidence = evidence_shim(job->dir, &job->launch.pidfd);
    /* A shim that has written its record has nothing more to tell. */
    struct err none;
    if (job->evidence == EVIDENCE_HIDDEN && evidence_exit(job->dir, &ignored, &none) == 0)
        job->evidence = EVIDENCE_NONE;
}

static void on_prepared(uv_work_t *work, int status)
{
    struct runner_job *job = work->data;
    job->pidfd = job->launch.pidfd;
    if (job->launch.pid > 0)
        job->child = job->launch.pid;
    (void)status; /* nothing is ever cancelled */
    free(job->spec);
    job->spec = NULL;
    if (job->runner->closing) {
        runner_job_close(job);
    } else if (job->err.code != 0) {
        job_gone(job, false, &job->err);
    } else if (job->pidfd >= 0 && watch_shim(job)) {
        enter_watched(job);
    } else if (job->pidfd >= 0 || job->evidence == EVIDENCE_HIDDEN) {
        enter_waiting(job);
    } else {
        move(job, ENDING);
        runner_job_tick(job);
    }
}

static void prepare(struct runner_job *job)
{
    int rc = uv_queue_work(job->runner->loop, &job->work, on_pool, on_prepared);
    assert(rc == 0); /* it fails only for a NULL function */
    (void)rc;
}

static void tick_waiting(struct runner_job *job)
{
    move(job, PREPARING);
    prepare(job);
}

static void tick_watched(struct runner_job *job)
{
    bool more = false;
    job->dirty = false;
    look_for_start(job);
    if (job->phase != CLOSING)
        more = deliver_reports(job);
    if (job->phase != CLOSING)
        look_at_log(job);
    if (job->phase != CLOSING && more)
        uv_timer_start(&job->timer, on_job_timer, 0, 0);
}

static void tick_ending(struct runner_job *job)
{
    tick_watched(job);
    if (job->phase != CLOSING && !uv_is_active((uv_handle_t *)&job->timer))
        conclude(job);
}

void runner_job_tick(struct runner_job *job)
{
    static void (*const ticks[PHASE_COUNT])(struct runner_job * job) = {
        [WAITING] = tick_waiting, [WATCHED] = tick_watched, [ENDING] = tick_ending};
    if (ticks[job->phase] != NULL)
        ticks[job->phase](job);
}

static void take_up(struct runner_job *job)
{
    struct runner_uv *runner = job->runner;
    uv_timer_init(runner->loop, &job->timer);
    job->n_handles = 1;
    job->next = runner->jobs;
    runner->jobs = job;
    runner->n_alive++;
    prepare(job);
}

bool runner_job_spawn(struct runner_uv *runner, const struct runner_spec *spec)
{
    struct runner_job *job = job_new(runner, spec->id, spec->dir, 0);
    if (job == NULL)
        return false;
    if ((job->spec = launch_copy(spec)) == NULL) {
        job_done(job);
        return false;
    }
    take_up(job);
    return true;
}

bool runner_job_adopt(struct runner_uv *runner, int64_t id, const char *dir, int64_t report_offset)
{
    struct runner_job *job = job_new(runner, id, dir, report_offset);
    if (job != NULL)
        take_up(job);
    return job != NULL;
}

void runner_job_stop(struct runner_job *job)
{
    job->stop_asked = true;
    if (job->phase == WATCHED)
        signal_shim(job);
}
