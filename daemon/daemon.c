/* daemon.c: see daemon.h. */
#include "daemon/daemon.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "daemon/detach.h"
#include "daemon/limits.h"
#include "daemon/listen.h"
#include "daemon/log.h"
#include "daemon/recover.h"
#include "daemon/statedir.h"
#include "daemon/store_thread.h"

static int open_parts(struct daemon *daemon, struct err *err)
{
    char path[PATH_MAX];
    int rc = statedir_open(daemon->config->state, &daemon->lock_fd, err);
    if (rc != 0)
        return rc;
    snprintf(path, sizeof path, "%s/traind.db", daemon->config->state);
    rc = store_open(path, &daemon->opened, err);
    if (rc == 0)
        rc = recover_load(daemon, err);
    if (rc == 0)
        rc = usage_load(daemon, err);
    if (rc == 0)
        rc = drain_load(daemon, err);
    if (rc == 0)
        rc = listener_open(daemon->loop, daemon->config, &daemon->listener, err);
    return rc;
}

int daemon_open(uv_loop_t *loop, const struct config *config, struct runner *runner,
                struct daemon **ret_daemon, struct err *err)
{
    struct daemon *daemon = calloc(1, sizeof *daemon);
    if (daemon == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    daemon->config = config;
    daemon->loop = loop;
    daemon->lock_fd = daemon->ready_fd = -1;
    LIST_INIT(&daemon->sessions.list);
    LIST_INIT(&daemon->waits);
    daemon->runner = runner;
    int rc = open_parts(daemon, err);
    if (rc != 0) {
        daemon_free(daemon);
        return rc;
    }
    runner->events = &jobs_runner_events;
    runner->owner = daemon;
    daemon->started_ns = runner->now_ns(runner);
    *ret_daemon = daemon;
    return 0;
}

void daemon_start(struct daemon *daemon)
{
    daemon->runner->probe(daemon->runner, daemon->config->cpu_devices);
}

static void list_devices(struct daemon *daemon, struct inventory *inventory)
{
    int next[DEVICE_CUDA + 1] = {0};
    daemon->inventory = inventory;
    daemon->devices.n = inventory->n;
    for (size_t i = 0; i < inventory->n; i++) {
        enum device_type type = inventory->device[i].type;
        daemon->devices.id[i] = (struct device_id){.type = type, .index = next[type]++};
    }
}

static void on_client(void *arg, int fd)
{
    session_accept(arg, fd);
}

void daemon_probed(struct daemon *daemon, struct inventory *inventory, const struct err *why)
{
    struct err err = ERR_INIT;
    if (inventory == NULL) {
        err = *why;
        err_context(&err, "the devices cannot be listed");
        daemon_fail(daemon, &err);
        return;
    }
    list_devices(daemon, inventory);
    if (store_thread_start(daemon->loop, daemon->opened, &daemon->store, &err) != 0) {
        daemon_fail(daemon, &err);
        return;
    }
    daemon->opened = NULL;
    recover_adopt(daemon);
    listener_start(daemon->listener, on_client, daemon);
    log_info("ready: %zu device%s, socket %s", daemon->devices.n, daemon->devices.n == 1 ? "" : "s",
             daemon->config->socket);
    if (detach_ready(daemon->ready_fd, daemon->config->state, &err) != 0)
        daemon_fail(daemon, &err);
    daemon->ready_fd = -1;
}

void daemon_set_alarm(struct daemon *daemon)
{
    int64_t due = wait_next_ms(daemon);
    if (daemon->jobs.flush_at_ms != 0 && daemon->jobs.flush_at_ms < due)
        due = daemon->jobs.flush_at_ms;
    if (limits_next_ms(daemon) < due)
        due = limits_next_ms(daemon);
    int64_t now = daemon->runner->clock_ms(daemon->runner);
    daemon->runner->set_alarm(daemon->runner, due == INT64_MAX ? -1 : due > now ? due - now : 0);
}

static void on_store_closed(void *arg)
{
    (void)arg; /* the last of our handles: uv_run returns */
}

/* Only now can no more requests for the store come. */
static void on_runner_closed(void *arg)
{
    struct daemon *daemon = arg;
    daemon->runner = NULL;
    if (daemon->store != NULL)
        store_thread_stop(daemon->store, on_store_closed, daemon);
    daemon->store = NULL;
}

void daemon_stop(struct daemon *daemon)
{
    if (daemon->stopping)
        return;
    if (daemon->store != NULL)
        jobs_flush(daemon, true);
    daemon->stopping = true;
    listener_close(daemon->listener);
    daemon->listener = NULL;
    session_close_all(daemon);
    daemon->runner->close(daemon->runner, on_runner_closed);
}

void daemon_fail(struct daemon *daemon, const struct err *err)
{
    log_error("%s", err->message);
    daemon->exit_status = 1;
    daemon_stop(daemon);
}

int daemon_free(struct daemon *daemon)
{
    int status = daemon->exit_status;
    wait_free_all(daemon);
    jobs_done(daemon);
    usage_done(&daemon->usage);
    inventory_free(daemon->inventory);
    store_close(daemon->opened);
    listener_close(daemon->listener);
    statedir_close(daemon->lock_fd);
    free(daemon);
    return status;
}
