/* watch.h: job.watch: a snapshot, then events. The loop's thread.
 *
 * State events carry the seq of their row in the history, so that `since` works over restarts of
 * the daemon. A session has one watch; a new one replaces it.
 *
 * A client that does not keep up: events of progress are remembered as "job N has news" (one each,
 * sent as its newest state when the client has caught up), beyond WATCH_BEHIND jobs they are
 * dropped and one `lagged` says so. State events are always queued; session.c closes at its hard
 * cap.
 */
#ifndef DAEMON_WATCH_H
#define DAEMON_WATCH_H

#include "daemon/job.h"
#include "daemon/journal.h"
#include "daemon/session.h"

enum {
    WATCH_IDS = 256,     /* in one job.watch */
    WATCH_BEHIND = 64,   /* jobs with remembered news */
    WATCH_REPLAY = 10000 /* events that `since` gives at most */
};

/* The handler of job.watch. */
int watch_call(struct daemon *daemon, struct call *call, struct err *err);
/* A committed move. */
void watch_moved(struct daemon *daemon, const struct job_record *record,
                 const struct job_transition *transition);
/* News of a running job; they are in record->progress. */
void watch_news(struct daemon *daemon, const struct job_record *record, enum journal_news news);
/* The session's client has read most of what was queued. */
void watch_drained(struct session *session);
void watch_forget(struct session *session);

#endif
