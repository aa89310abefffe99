/* runner.h: everything outside the daemon's own decisions: processes, a timer, the clocks.
 *
 * runner_uv.c is the real one; the daemon's tests have one in simulated time. The daemon calls the
 * functions, the runner answers through `events`; all of it on the loop's thread. No function
 * blocks, and no event is ever delivered from within a call of a function: a caller may call
 * anything at any time, an event handler too.
 *
 * One job's life, seen from here (one `spawn` or `adopt` opens it, `ended` or `gone` closes it):
 *
 *     spawn ─┐
 *            ├─► [started] ─► (report | log_grew)* ─► ended │ gone
 *     adopt ─┘
 *
 * - `started` comes once at most, always before the first `report` and also for an adopted job
 *   whose program runs already. A job may end without it.
 * - All whole lines of report.jsonl from `report_offset` on are delivered, in order, before `ended`
 *   or `gone`; a last line without '\n' is not.
 * - After `ended` or `gone` the runner has forgotten the id: nothing of the job runs any more.
 *
 * Never twice: before the shim is started the runner takes flock(LOCK_EX) on DIR/shim.lock, and the
 * shim inherits that descriptor (as 3, not passed on to the job). Whoever finds the lock free knows
 * that no shim of this job lives, also in the moment before shim.json is written; `adopt` decides
 * by it.
 */
#ifndef DAEMON_RUNNER_H
#define DAEMON_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/inventory.h"
#include "proto/err.h"

/* X(NAME, text in exit.json) */
#define RUNNER_REASONS(X)                                                                          \
    X(EXITED, "exited")                                                                            \
    X(SIGNALLED, "signalled")                                                                      \
    X(OOM, "oom")                                                                                  \
    X(HUNG, "hung")                                                                                \
    X(STOPPED, "stopped")                                                                          \
    X(EXEC_FAILED, "exec_failed")

enum runner_reason {
#define X(name, text) RUNNER_##name,
    RUNNER_REASONS(X)
#undef X
        RUNNER_REASON_COUNT
};

/* exit.json, parsed. */
struct runner_exit {
    int status; /* -1: it did not exit by itself */
    int signal; /* 0: none */
    enum runner_reason reason;
    char message[512]; /* one sentence, or "" */
    int64_t ended_ns;  /* realtime */
    int64_t oom_kills;
};

/* What to run. All of it is the caller's and copied by spawn. */
struct runner_spec {
    int64_t id;
    const char *dir; /* the job's directory, absolute */
    const char *cwd;
    bool drop; /* become uid and gid (root mode); the runner looks the name up, off the loop */
    uid_t uid;
    gid_t gid;
    int grace_s;
    const char *document; /* becomes DIR/job.json and the job's standard input */
    size_t document_size;
    const char *const *argv; /* the program and its arguments, NULL at the end */
    const char *const *env;  /* "NAME=VALUE", NULL at the end; or NULL: none */
};

struct runner_events {
    /* The job's program has been exec'ed. */
    void (*started)(void *owner, int64_t id);
    /* One line of report.jsonl without its '\n'; `next` is the offset behind it. */
    void (*report)(void *owner, int64_t id, const char *line, size_t size, int64_t next);
    /* DIR/log is now `size` bytes long. Changes may be merged. */
    void (*log_grew)(void *owner, int64_t id, int64_t size);
    void (*ended)(void *owner, int64_t id, const struct runner_exit *record);
    /* There is no shim any more and it left no exit record. `ran` false: nothing of the job has
     * ever run, nor will it (the shim could not be started, or never was): it may be run again.
     * `why` has a sentence. */
    void (*gone)(void *owner, int64_t id, bool ran, const struct err *why);
    /* The answer to probe: the inventory becomes the owner's; or NULL, and why. */
    void (*probed)(void *owner, struct inventory *inventory, const struct err *why);
    void (*alarm)(void *owner);
};

struct runner {
    const struct runner_events *events; /* set by the owner before the first call */
    void *owner;

    /* Creates DIR (0700) if need be, writes job.json, removes what an attempt that never ran has
     * left, starts traind-shim in a session of its own. All of that off the loop: every failure
     * comes as `gone` with ran = false. */
    void (*spawn)(struct runner *self, const struct runner_spec *spec);
    /* Takes up a job of an earlier daemon by the evidence in DIR:
     *   exit.json is there             → the reports, then `ended`
     *   the shim lives (lock held)     → as after spawn; a shim that has not written shim.json yet
     *                                    is waited for
     *   no shim, shim.json is absent   → `gone`, ran = false
     *   no shim, shim.json is there    → the reports, then `gone`, ran = true
     * A shim is signalled only after its pidfd was checked against start_time and boot_id. */
    void (*adopt)(struct runner *self, int64_t id, const char *dir, int64_t report_offset);
    /* Asks the job to stop (SIGTERM to the shim, as soon as there is one). Repeating it, or an
     * unknown id, does nothing. The end comes as `ended`. */
    void (*stop)(struct runner *self, int64_t id);
    /* Runs `traind-worker probe --json [--cpu-devices N]` (0: its default), capped in time. */
    void (*probe)(struct runner *self, int cpu_devices);
    /* One `alarm` after `delay_ms`; replaces the one before. Negative: none. */
    void (*set_alarm)(struct runner *self, int64_t delay_ms);
    int64_t (*now_ns)(struct runner *self);   /* realtime, since 1970 */
    int64_t (*clock_ms)(struct runner *self); /* monotonic */
    /* Lets go of everything without stopping any job; then calls closed(owner), after which
     * `self` is gone. No other event follows. */
    void (*close)(struct runner *self, void (*closed)(void *owner));
};

/* The real one, on `loop`. `shim` and `worker` are absolute paths (copied). Errors: ERR_NOMEM,
 * ERR_IO (inotify). */
struct uv_loop_s;
int runner_uv_new(struct uv_loop_s *loop, const char *shim, const char *worker,
                  struct runner **ret_runner, struct err *err);

#endif
