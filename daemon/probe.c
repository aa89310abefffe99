/* probe.c: one child process, its standard output, a time limit.
 *
 *     reading ──(exited and end of output) or limit or failure──► answered ──► closing ──► closed
 */
#include "daemon/probe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

struct probe {
    const struct probe_events *events;
    void *owner;
    uv_process_t process;
    uv_pipe_t output;
    uv_timer_t limit;
    int n_handles; /* not closed yet */
    bool running, exited, at_end, closing;
    int64_t status;
    int signal;
    struct err err; /* code 0: none so far */
    size_t used;
    char text[PROBE_BYTES];
};

static void on_close(uv_handle_t *handle)
{
    struct probe *probe = handle->data;
    if (--probe->n_handles > 0)
        return;
    const struct probe_events *events = probe->events;
    void *owner = probe->owner;
    free(probe);
    events->closed(owner);
}

void probe_cancel(struct probe *probe)
{
    if (probe->closing)
        return;
    probe->closing = true;
    if (probe->running && !probe->exited)
        uv_process_kill(&probe->process, SIGKILL);
    uv_close((uv_handle_t *)&probe->process, on_close);
    uv_close((uv_handle_t *)&probe->output, on_close);
    uv_close((uv_handle_t *)&probe->limit, on_close);
}

static void answer(struct probe *probe)
{
    struct inventory *inventory = NULL;
    if (probe->err.code == 0 && probe->signal != 0)
        err_set(&probe->err, ERR_DEVICE_FAILED, "it died of signal %d", probe->signal);
    else if (probe->err.code == 0 && probe->status != 0)
        err_set(&probe->err, ERR_DEVICE_FAILED, "it ended with status %d", (int)probe->status);
    else if (probe->err.code == 0)
        inventory_parse(probe->text, probe->used, &inventory, &probe->err);
    if (inventory == NULL)
        err_context(&probe->err, "traind-worker probe");
    /* The owner may cancel from within: the handles are closed in any case. */
    probe->events->answered(probe->owner, inventory, inventory == NULL ? &probe->err : NULL);
    probe_cancel(probe);
}

static void on_worker_exit(uv_process_t *process, int64_t status, int signal)
{
    struct probe *probe = process->data;
    probe->exited = true;
    probe->status = status;
    probe->signal = signal;
    if (probe->at_end && !probe->closing)
        answer(probe);
}

/* Gives up: what was started is killed, and answered for once it has been reaped. */
static void on_limit(uv_timer_t *limit)
{
    struct probe *probe = limit->data;
    if (probe->err.code == 0)
        err_set(&probe->err, ERR_DEVICE_FAILED, "no answer within %d s", PROBE_LIMIT_MS / 1000);
    probe->at_end = true;
    if (probe->running && !probe->exited)
        uv_process_kill(&probe->process, SIGKILL);
    else
        answer(probe);
}

/* On the next turn of the loop, never from within probe_start. */
static void fail(struct probe *probe, const char *what, int status)
{
    err_set(&probe->err, ERR_IO, "%s: %s", what, uv_strerror(status));
    uv_timer_start(&probe->limit, on_limit, 0, 0);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    struct probe *probe = handle->data;
    (void)suggested;
    *ret_buf = uv_buf_init(probe->text + probe->used, (unsigned)(sizeof probe->text - probe->used));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct probe *probe = stream->data;
    (void)buf;
    if (n >= 0) {
        probe->used += (size_t)n;
        return;
    }
    uv_read_stop(stream);
    if (n != UV_EOF) { /* UV_ENOBUFS: the list is longer than any can be */
        fail(probe, "reading its list", (int)n);
        return;
    }
    probe->at_end = true;
    if (probe->exited)
        answer(probe);
}

static void run(struct uv_loop_s *loop, struct probe *probe, const char *worker, int cpu_devices)
{
    char number[16];
    char *args[] = {(char *)worker, "probe", "--json", NULL, NULL, NULL};
    if (cpu_devices > 0) {
        snprintf(number, sizeof number, "%d", cpu_devices);
        args[3] = "--cpu-devices";
        args[4] = number;
    }
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&probe->output},
        {.flags = UV_INHERIT_FD, .data.fd = 2},
    };
    uv_process_options_t options = {.exit_cb = on_worker_exit,
                                    .file = worker,
                                    .args = args,
                                    .stdio = stdio,
                                    .stdio_count = sizeof stdio / sizeof *stdio};
    int rc = uv_spawn(loop, &probe->process, &options);
    probe->running = rc == 0;
    if (rc == 0)
        rc = uv_read_start((uv_stream_t *)&probe->output, on_room, on_read);
    if (rc != 0)
        fail(probe, worker, rc);
}

struct probe *probe_start(struct uv_loop_s *loop, const char *worker, int cpu_devices,
                          const struct probe_events *events, void *owner)
{
    struct probe *probe = calloc(1, sizeof *probe);
    if (probe == NULL)
        return NULL;
    probe->events = events;
    probe->owner = owner;
    probe->n_handles = 3;
    probe->process.data = probe->output.data = probe->limit.data = probe;
    uv_timer_init(loop, &probe->limit);
    uv_pipe_init(loop, &probe->output, 0);
    uv_timer_start(&probe->limit, on_limit, PROBE_LIMIT_MS, 0);
    run(loop, probe, worker, cpu_devices);
    return probe;
}
