/* job.h: a job as the daemon keeps it, and the one table of legal moves between its states.
 *
 *    held ◄──► queued ──► starting ──► running ──► completed │ failed │ lost
 *      │         │  ◄────────┘ │          │
 *      │         │             └────┬─────┘
 *      ▼         ▼                  ▼
 *      cancelled ◄────────────── stopping ──► completed │ timed_out │ lost
 *
 * Values without any I/O. A record is touched by one thread at a time: the store's thread gets and
 * gives copies.
 */
#ifndef DAEMON_JOB_H
#define DAEMON_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/devset.h"
#include "daemon/runner.h"
#include "proto/err.h"
#include "proto/state.h"

enum job_actor { ACTOR_DAEMON = 1, ACTOR_USER = 2 }; /* a user: the owner or an administrator */

/* What the worker itself said about its end. Kept in the database: never renumber. */
enum job_outcome { OUTCOME_NONE = 0, OUTCOME_DONE = 1, OUTCOME_FAILED = 2 };

/* Why a job is asked to stop. Kept in the database: never renumber. */
enum job_stop { STOP_CANCEL = 0, STOP_TIME_LIMIT = 1 };

struct job_record {
    int64_t id;
    uid_t uid;
    gid_t gid;
    enum job_state state;
    char *reason; /* of the last move, or NULL */
    char *name, *cwd;
    char *output;                               /* absolute */
    int64_t submitted_ns, started_ns, ended_ns; /* realtime; 0: not yet */
    struct devlist want;
    struct devlist devices; /* assigned; n = 0: none */
    int64_t priority;       /* the larger goes first */
    int64_t time_limit_s;   /* 0: none */
    json_t *after;          /* ids of the jobs that must have completed, or NULL */
    enum job_stop stop;     /* of a job that is stopping */
    int64_t report_offset;  /* report.jsonl is read up to here */
    enum job_outcome outcome;
    char *weights;     /* path, or NULL */
    json_t *progress;  /* an object, or NULL */
    json_t *exit;      /* an object; shown once the job has ended */
    json_t *confusion; /* rows, or NULL */
    json_t *losses;    /* [[step, loss], …], thinned */
};

/* What decides who may do what with a job, and how it ended. */
struct job_brief {
    int64_t id;
    uid_t uid;
    enum job_state state; /* STATE_COUNT: there is no such job */
    json_t *exit;         /* an object, or NULL */
};

/* One row of a job's history. */
struct job_transition {
    int64_t seq; /* increases over all jobs */
    int64_t id, time_ns;
    enum job_state from; /* STATE_COUNT: submitted just now */
    enum job_state to;
    bool by_user;
    uid_t uid;    /* by_user */
    char *reason; /* or NULL */
};

/* May `actor` move a job from one state to the other? */
bool job_may_move(enum job_state from, enum job_state to, enum job_actor actor);

/* Moves the record if the table allows it: sets state, reason and the times that belong to it.
 * `reason` may be NULL. Errors: ERR_JOB_STATE, with nothing changed; ERR_NOMEM. */
int job_move(struct job_record *record, enum job_state to, enum job_actor actor, int64_t now_ns,
             const char *reason, struct err *err);

/* A deep copy, NULL without memory. */
struct job_record *job_record_copy(const struct job_record *record);
void job_record_free(struct job_record *record);
void job_transition_done(struct job_transition *transition);

#endif
