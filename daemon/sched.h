/* sched.h: who starts next, on which devices, and why the others wait. PURE.
 *
 * The order: the larger priority first; of one priority whoever has had less of the devices lately
 * (share.h), then who holds fewer now; then first come, first served. A user at the limit of
 * devices waits without being in anybody's way.
 *
 * The first job that does not fit is the head. Devices are reserved for it from the moment when, by
 * the time limits of what runs, it can start. What comes behind it starts only beside the reserved
 * devices, or where its own time limit ends before that moment (EASY backfill), so that nothing
 * behind the head ever delays it. Where a job without a time limit keeps that moment unknown,
 * nothing starts on devices that the head could use.
 */
#ifndef DAEMON_SCHED_H
#define DAEMON_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/devset.h"

enum sched_cause {
    SCHED_AFTER,      /* the end of the job `other` */
    SCHED_USER_LIMIT, /* devices that its user may still have */
    SCHED_DRAINED,    /* devices that are drained */
    SCHED_DEVICES,    /* devices that others have: it is the head */
    SCHED_BEHIND,     /* `other` is before it, */
    SCHED_PRIORITY,   /* … for its priority, */
    SCHED_SHARE,      /* … for its user has had less */
    SCHED_CAUSES
};

struct sched_why {
    enum sched_cause cause;
    int64_t other;    /* a job */
    size_t some, all; /* devices: missing of wanted, held of allowed */
};

struct sched_job {
    int64_t id;
    size_t user; /* in the list of users */
    int64_t priority;
    int64_t after; /* a job that has to complete first, or 0 */
    struct devwish wish;
    double limit_s; /* how long it runs at most; INFINITY: nobody knows */
    size_t next;    /* the scheduler's own */
    /* The answer: */
    bool start;
    devset got;           /* with `start`; devset_pick from it gives the list in its order */
    struct sched_why why; /* without */
};

struct sched_user {
    uid_t uid;
    double usage;    /* device-seconds, decayed until now, of running jobs too */
    size_t devices;  /* held; what starts is added */
    int64_t blocked; /* the answer: the first job that the limit of devices keeps waiting, or 0 */
};

/* A job that holds devices. */
struct sched_run {
    devset devices;
    double ends_s; /* at the latest; INFINITY: nobody knows */
};

struct sched_box {
    const struct devlist *devices;
    devset free; /* of no job, and not drained */
    devset drained;
    const struct sched_run *runs;
    size_t n_runs;
    double now_s;
    size_t user_devices; /* that one user may hold; 0: any number */
};

/* The first job that waits for devices. */
struct sched_head {
    int64_t id;     /* 0: there is none */
    double start_s; /* when it starts at the latest; INFINITY: nobody knows */
};

/* Decides for the `n` queued jobs, which are in the order of their ids. Errors: ERR_NOMEM. */
int sched_decide(const struct sched_box *box, struct sched_user *users, size_t n_users,
                 struct sched_job *jobs, size_t n, struct sched_head *ret_head, struct err *err);

/* "waiting for 2 of 4 devices", "behind job 17 (priority)", "after job 3"; returns `buf`. */
const char *sched_reason(const struct sched_why *why, char buf[static 64]);

#endif
