/* launch.h: makes a job's directory and starts its shim. Blocking; any thread. */
#ifndef DAEMON_LAUNCH_H
#define DAEMON_LAUNCH_H

#include <sys/types.h>

#include "daemon/runner.h"
#include "proto/err.h"

struct launch {
    pid_t pid; /* a child of this process */
    int pidfd; /* the caller's; -1: no descriptor was to be had */
};

/* A copy with all that it points to, in one block to be freed with free(); NULL without memory. */
struct runner_spec *launch_copy(const struct runner_spec *spec);

/* Creates spec->dir (0700) if need be, takes the lock, removes what another attempt has left,
 * writes job.json (synced, by rename), looks up the user's name and starts `shim` (an absolute
 * path) in a session of its own with a clean environment, SIGTERM blocked (so that none is lost
 * before the shim can hear it), descriptors 0 and 1 /dev/null, 2 DIR/log and 3 the lock. Errors:
 * ERR_BUSY (a shim of this job lives), ERR_IO, ERR_NOMEM; then no shim was started. */
int launch_shim(const char *shim, const struct runner_spec *spec, struct launch *ret_launch,
                struct err *err);

#endif
