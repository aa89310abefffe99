/* daemon.h: the daemon as one object: what main.c starts and stops, what its parts share.
 *
 *     open: state directory locked, database migrated, socket bound
 *       └─► start: probe ─► inventory ─► recover ─► serve ─► stop: all closed, jobs go on
 *
 * Everything but the store's own thread runs on the loop's thread.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/drain.h"
#include "daemon/inventory.h"
#include "daemon/jobs.h"
#include "daemon/runner.h"
#include "daemon/session.h"
#include "daemon/usage.h"
#include "daemon/wait.h"
#include "proto/err.h"

struct uv_loop_s;
struct listener;
struct store;
struct store_thread;

struct daemon {
    const struct config *config;
    struct uv_loop_s *loop;
    struct runner *runner;
    int lock_fd;
    int ready_fd;         /* --detach: where the command waits (detach.h); else -1 */
    struct store *opened; /* until the store's thread has it */
    struct store_thread *store;
    struct listener *listener;
    struct inventory *inventory;
    struct devlist devices; /* the inventory's, position by position */
    struct drains drains;
    struct jobs jobs;
    struct usage usage;
    struct sessions sessions;
    struct waits waits;
    int64_t started_ns;
    bool stopping;
    int exit_status; /* for main: 0, or 1 after daemon_fail */
};

/* Takes `config` and `runner` (whose events it sets). Errors: those of statedir_open, store_open,
 * listener_open; the runner stays the caller's then. */
int daemon_open(struct uv_loop_s *loop, const struct config *config, struct runner *runner,
                struct daemon **ret_daemon, struct err *err);
/* Asks for the devices; the rest follows on the loop. */
void daemon_start(struct daemon *daemon);
/* Closes everything; the loop then has nothing to do and uv_run returns. Running jobs go on. */
void daemon_stop(struct daemon *daemon);
/* Frees what is left, after uv_run. Returns the exit status. */
int daemon_free(struct daemon *daemon);

/* The runner's answer to probe: the daemon takes up its jobs and serves, or fails. */
void daemon_probed(struct daemon *daemon, struct inventory *inventory, const struct err *why);
/* Something that the daemon cannot go on without has failed: logs it and stops. A new daemon on the
 * same state directory picks up where this one was. */
void daemon_fail(struct daemon *daemon, const struct err *err);
/* Sets the runner's alarm to the earliest thing that is due. */
void daemon_set_alarm(struct daemon *daemon);

#endif
