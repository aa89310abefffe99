/* runner_uv.c: the runner on libuv: its jobs, notifications, timers and the probe.
 *
 * A job's life is in runner_job.c, the probe's in probe.c; here is what they share, and the end:
 * `close` closes every handle, and whatever closes last frees the runner.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "daemon/runner_job.h"

static void free_parts(struct runner_uv *runner)
{
    if (runner->inotify_fd >= 0)
        close(runner->inotify_fd);
    free(runner->shim);
    free(runner->worker);
    free(runner);
}

void runner_uv_release(struct runner_uv *runner)
{
    if (--runner->n_alive > 0)
        return;
    void (*closed)(void *owner) = runner->closed;
    void *owner = runner->base.owner;
    free_parts(runner);
    closed(owner);
}

static void mark_dirty(struct runner_uv *runner, const struct inotify_event *event)
{
    bool all = (event->mask & IN_Q_OVERFLOW) != 0;
    for (struct runner_job *job = runner->jobs; job != NULL; job = job->next) {
        if (all || job->watch == event->wd)
            job->dirty = true;
    }
}

/* Event handlers may change the list: begin anew after each. */
static void tick_dirty(struct runner_uv *runner)
{
    struct runner_job *job = runner->jobs;
    while (job != NULL) {
        if (!job->dirty) {
            job = job->next;
            continue;
        }
        job->dirty = false;
        runner_job_tick(job);
        job = runner->jobs;
    }
}

static void on_inotify(uv_poll_t *poll, int status, int events)
{
    struct runner_uv *runner = poll->data;
    _Alignas(struct inotify_event) char buf[16 << 10];
    (void)status;
    (void)events;
    ssize_t n = read(runner->inotify_fd, buf, sizeof buf);
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *event = (const struct inotify_event *)(buf + at);
        mark_dirty(runner, event);
        at += (ssize_t)(sizeof *event + event->len);
    }
    tick_dirty(runner);
}

/* Tells on the next turn of the loop what there was no memory for. */
static void on_refusals(uv_timer_t *timer)
{
    struct runner_uv *runner = timer->data;
    struct err err;
    err_set(&err, ERR_NOMEM, "out of memory");
    while (runner->n_refused > 0 && !runner->closing)
        runner->base.events->gone(runner->base.owner, runner->refused[--runner->n_refused], false,
                                  &err);
    if (runner->probe_refused && !runner->closing) {
        runner->probe_refused = false;
        runner->base.events->probed(runner->base.owner, NULL, &err);
    }
}

static void refuse(struct runner_uv *runner, int64_t id)
{
    if (runner->n_refused < RUNNER_MAX_REFUSED)
        runner->refused[runner->n_refused++] = id;
    uv_timer_start(&runner->refusals, on_refusals, 0, 0);
}

static void runner_spawn(struct runner *self, const struct runner_spec *spec)
{
    struct runner_uv *runner = (struct runner_uv *)self;
    if (!runner_job_spawn(runner, spec))
        refuse(runner, spec->id);
}

static void runner_adopt(struct runner *self, int64_t id, const char *dir, int64_t report_offset)
{
    struct runner_uv *runner = (struct runner_uv *)self;
    if (!runner_job_adopt(runner, id, dir, report_offset))
        refuse(runner, id);
}

static void runner_stop(struct runner *self, int64_t id)
{
    struct runner_job *job = runner_job_find((struct runner_uv *)self, id);
    if (job != NULL)
        runner_job_stop(job);
}

static void on_answered(void *owner, struct inventory *inventory, const struct err *why)
{
    struct runner_uv *runner = owner;
    runner->base.events->probed(runner->base.owner, inventory, why);
}

static void on_probe_closed(void *owner)
{
    struct runner_uv *runner = owner;
    runner->probe = NULL;
    runner_uv_release(runner);
}

static const struct probe_events probe_events = {on_answered, on_probe_closed};

static void runner_probe(struct runner *self, int cpu_devices)
{
    struct runner_uv *runner = (struct runner_uv *)self;
    if (runner->probe != NULL)
        return; /* its answer is on the way */
    runner->probe = probe_start(runner->loop, runner->worker, cpu_devices, &probe_events, runner);
    if (runner->probe != NULL) {
        runner->n_alive++;
    } else {
        runner->probe_refused = true;
        uv_timer_start(&runner->refusals, on_refusals, 0, 0);
    }
}

static void on_alarm(uv_timer_t *timer)
{
    struct runner_uv *runner = timer->data;
    runner->base.events->alarm(runner->base.owner);
}

static void runner_set_alarm(struct runner *self, int64_t delay_ms)
{
    struct runner_uv *runner = (struct runner_uv *)self;
    uv_timer_stop(&runner->alarm);
    if (delay_ms < 0)
        return;
    uv_update_time(runner->loop); /* a timer counts from the loop's cached time */
    uv_timer_start(&runner->alarm, on_alarm, (uint64_t)delay_ms, 0);
}

static int64_t runner_now_ns(struct runner *self)
{
    struct timespec ts;
    (void)self;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t runner_clock_ms(struct runner *self)
{
    (void)self;
    return (int64_t)(uv_hrtime() / 1000000);
}

static void on_close(uv_handle_t *handle)
{
    runner_uv_release(handle->data);
}

static void runner_close(struct runner *self, void (*closed)(void *owner))
{
    struct runner_uv *runner = (struct runner_uv *)self;
    runner->closing = true;
    runner->closed = closed;
    for (struct runner_job *job = runner->jobs, *next; job != NULL; job = next) {
        next = job->next;
        if (job->phase != PREPARING) /* the thread pool has it: closed when it comes back */
            runner_job_close(job);
    }
    if (runner->probe != NULL)
        probe_cancel(runner->probe);
    uv_close((uv_handle_t *)&runner->alarm, on_close);
    uv_close((uv_handle_t *)&runner->refusals, on_close);
    uv_close((uv_handle_t *)&runner->inotify, on_close);
}

static const struct runner functions = {
    .spawn = runner_spawn,
    .adopt = runner_adopt,
    .stop = runner_stop,
    .probe = runner_probe,
    .set_alarm = runner_set_alarm,
    .now_ns = runner_now_ns,
    .clock_ms = runner_clock_ms,
    .close = runner_close,
};

int runner_uv_new(struct uv_loop_s *loop, const char *shim, const char *worker,
                  struct runner **ret_runner, struct err *err)
{
    struct runner_uv *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    runner->base = functions;
    runner->loop = loop;
    runner->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int errnum = errno;
    runner->shim = strdup(shim);
    runner->worker = strdup(worker);
    int rc = 0;
    if (runner->inotify_fd < 0)
        rc = err_errno(err, errnum, "inotify");
    else if (runner->shim == NULL || runner->worker == NULL)
        rc = err_set(err, ERR_NOMEM, "out of memory");
    else if ((errnum = uv_poll_init(loop, &runner->inotify, runner->inotify_fd)) != 0)
        rc = err_set(err, ERR_IO, "inotify: %s", uv_strerror(errnum));
    if (rc != 0) {
        free_parts(runner);
        return rc;
    }
    runner->inotify.data = runner->alarm.data = runner->refusals.data = runner;
    uv_poll_start(&runner->inotify, UV_READABLE, on_inotify);
    uv_timer_init(loop, &runner->alarm);
    uv_timer_init(loop, &runner->refusals);
    runner->n_alive = 3;
    *ret_runner = &runner->base;
    return 0;
}
