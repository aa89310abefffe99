/* logs.h: job.logs: bytes of a job's log, once or as they come. Files are read off the loop. */
#ifndef DAEMON_LOGS_H
#define DAEMON_LOGS_H

#include "daemon/job.h"
#include "daemon/session.h"

enum {
    LOGS_CHUNK_BYTES = 256 << 10, /* in one reply or notification */
    LOGS_FOLLOWS = 16,            /* of one session */
};

/* The handler of job.logs. */
int logs_call(struct daemon *daemon, struct call *call, struct err *err);
/* The job's log has grown; or the job has ended (committed), and no more will come. */
void logs_grew(struct daemon *daemon, int64_t id);
void logs_ended(struct daemon *daemon, int64_t id);
void logs_drained(struct session *session);
void logs_forget(struct session *session);

#endif
