/* wait.h: job.wait: calls that are answered when jobs have ended. The loop's thread. */
#ifndef DAEMON_WAIT_H
#define DAEMON_WAIT_H

#include <sys/queue.h>

#include "daemon/job.h"
#include "daemon/session.h"

struct wait;
LIST_HEAD(waits, wait);

/* The handler of job.wait. */
int wait_call(struct daemon *daemon, struct call *call, struct err *err);
/* A job has moved (committed). */
void wait_moved(struct daemon *daemon, const struct job_record *record);
/* Answers those whose time is over. */
void wait_expire(struct daemon *daemon);
/* clock_ms of the next timeout; INT64_MAX: none. */
int64_t wait_next_ms(const struct daemon *daemon);
/* Frees what waits for clients that are gone. */
void wait_forget(struct daemon *daemon);
void wait_free_all(struct daemon *daemon);

#endif
