/* state.h: the states of a job, as the protocol names them. The legal moves are in daemon/job.c. */
#ifndef PROTO_STATE_H
#define PROTO_STATE_H

#include <stdbool.h>

#define JOB_STATES(X)                                                                              \
    X(HELD, "held", false)                                                                         \
    X(QUEUED, "queued", false)                                                                     \
    X(STARTING, "starting", false)                                                                 \
    X(RUNNING, "running", false)                                                                   \
    X(STOPPING, "stopping", false)                                                                 \
    X(PREEMPTED, "preempted", false)                                                               \
    X(COMPLETED, "completed", true)                                                                \
    X(FAILED, "failed", true)                                                                      \
    X(CANCELLED, "cancelled", true)                                                                \
    X(TIMED_OUT, "timed_out", true)                                                                \
    X(LOST, "lost", true)

enum job_state {
#define X(name, text, ended) STATE_##name,
    JOB_STATES(X)
#undef X
        STATE_COUNT
};

const char *state_name(enum job_state state);
bool state_ended(enum job_state state);
/* All names, "held, queued, …". */
enum { STATE_LIST_SIZE = 128 };
const char *state_list(char buf[static STATE_LIST_SIZE]);
/* STATE_COUNT if `name` is none. */
enum job_state state_from_name(const char *name);

#endif
