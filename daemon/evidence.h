/* evidence.h: what a job's directory says about its shim, for a daemon that did not start it.
 * Blocking, but for small local files only; any thread. */
#ifndef DAEMON_EVIDENCE_H
#define DAEMON_EVIDENCE_H

#include <stdbool.h>

#include "daemon/runner.h"
#include "proto/err.h"

/* exit.json. Returns 0; ERR_NOT_FOUND: there is none; ERR_NOMEM: no memory or descriptors to read
 * it now; ERR_IO: it cannot be read or is broken. */
int evidence_exit(const char *dir, struct runner_exit *ret_exit, struct err *err);

/* Was the shim far enough to start the job (shim.json is there)? */
bool evidence_ran(const char *dir);

enum evidence_shim {
    EVIDENCE_NONE,   /* no shim lives, and none will come of an earlier start */
    EVIDENCE_ALIVE,  /* *ret_pidfd, checked against boot id and start time, is the caller's */
    EVIDENCE_HIDDEN, /* one lives that has not said who it is, or is just ending: look again later
                      */
};

enum evidence_shim evidence_shim(const char *dir, int *ret_pidfd);

#endif
