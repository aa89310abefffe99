/* follow.h: watching jobs until they end. */
#ifndef CLIENT_FOLLOW_H
#define CLIENT_FOLLOW_H

#include "client/ctl.h"

/* Watches the jobs that `params` (of job.watch; consumed, NULL: no memory) names, shows their
 * progress and, when one ends, its summary; returns when all have ended. On a terminal a block a
 * job is redrawn in place, else plain lines come now and then, under --json every event.
 * ctl->status becomes 1 if one did not complete, STATUS_DETACHED after Ctrl-C. Errors: conn_call's
 * and ERR_UNREACHABLE when the daemon goes away. */
int follow_jobs(struct ctl *ctl, json_t *params, struct err *err);

/* Says on standard error that the jobs (an array of ids) go on, and how to come back: `command` is
 * "watch" or "logs -f". */
void follow_detached(struct ctl *ctl, const char *command, const json_t *ids);

#endif
