/* jobs.h: the jobs that have not ended: what happens to them, and when. The loop's thread.
 *
 * A move is decided in memory at once (so that the next decision sees it), written by the store,
 * and takes its effect (spawn, stop, events, the next start) only when it is committed.
 *
 *     submit ─► (held ─release─►) queued ─(sched_decide)─► starting ─commit─► runner->spawn
 *     runner: started ─► running;  ended ─► verdict;  gone ─► failed, lost or queued again
 */
#ifndef DAEMON_JOBS_H
#define DAEMON_JOBS_H

#include "daemon/after.h"
#include "daemon/job.h"
#include "daemon/runner.h"
#include "daemon/sched.h"
#include "proto/err.h"

struct daemon;

/* A job that has not ended. */
struct live {
    struct job_record *record;
    struct after after;   /* what it still waits for */
    struct sched_why why; /* queued and has to wait */
    bool waits;           /* `why` says for what */
    bool refused;         /* a report of it was refused, and the log says so */
    bool adopted;         /* taken over from an earlier daemon */
    bool opened;          /* the runner has it (spawn or adopt) */
    bool unsaved;         /* progress or offset that is not in the database yet */
};

/* Sorted by id; ids only grow, so that a new job goes to the end. */
struct jobs {
    struct live **live;
    size_t n, room;
    devset assigned;
    int64_t flush_at_ms; /* clock_ms when unsaved progress is written; 0: nothing is unsaved */
    int64_t limit_at_ms; /* clock_ms when time limits are looked at; 0: there are none */
};

extern const struct runner_events jobs_runner_events;

/* NULL if the job has ended or does not exist. */
struct live *jobs_find(struct daemon *daemon, int64_t id);
/* The live job that holds the device at this position of daemon->devices, or NULL. */
struct live *jobs_holder(struct daemon *daemon, size_t device);

/* Whether it has devices, so that nobody else may have them. */
bool jobs_holds(const struct live *live);

/* Why a live job waits, in words; NULL if it does not, or `live` is NULL. */
const char *jobs_why(const struct live *live, char buf[static 64]);

/* Takes over a record (queued, or found unfinished at the start). Errors: ERR_NOMEM. */
int jobs_add(struct daemon *daemon, struct job_record *record, struct live **ret_live,
             struct err *err);
/* Starts what can be started and computes why the rest waits. */
void jobs_schedule(struct daemon *daemon);

/* Why a job would wait if it were submitted now; *ret_why is in `buf`, or NULL. Errors: ERR_NOMEM.
 */
int jobs_forecast(struct daemon *daemon, const struct job_record *record, char buf[static 64],
                  const char **ret_why, struct err *err);

/* One move of a job, decided now and committed soon; `by` NULL: the daemon's. Running out of
 * memory here ends the daemon (daemon_fail): the next one recovers. */
void jobs_move(struct daemon *daemon, struct live *live, enum job_state to, const uid_t *by,
               const char *reason);
/* Cancels at once what waits and asks the others to stop; nothing where that is done already. */
void jobs_cancel(struct daemon *daemon, struct live *live, uid_t by, const char *reason);
/* Takes a job out of the queue and puts it back; nothing where that is done
 * already. */
void jobs_hold(struct daemon *daemon, struct live *live, uid_t by, const char *reason);
void jobs_release(struct daemon *daemon, struct live *live, uid_t by, const char *reason);
/* What an update changes, and to what. */
struct jobs_patch {
    bool prefers;
    int64_t priority;
    bool limits;
    int64_t time_limit_s; /* 0: none */
};
/* Of a job that waits or runs; its state stays. */
void jobs_update(struct daemon *daemon, struct live *live, const struct jobs_patch *patch, uid_t by,
                 const char *reason);
/* Ends a job that nothing runs of: failed or lost, with `why`. */
void jobs_give_up(struct daemon *daemon, struct live *live, enum job_state to,
                  const struct err *why);

/* Writes unsaved progress if it is time (or `now`). */
void jobs_flush(struct daemon *daemon, bool now);
void jobs_done(struct daemon *daemon);

#endif
