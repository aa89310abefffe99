/* crew.h: one thread a device, and a task that all of them do at once.
 *
 * crew_run hands the task to the threads and returns when all are done. When one fails, the crew's
 * `abort` is called at once, so that those that wait for it come back too, with ERR_CANCELLED; the
 * first error that is not that is the caller's, with `place` in front («replica 1 on cpu:1: …»).
 *
 * A device that does not answer is given up: when a task takes far longer than it ever did, the
 * crew is aborted, and a thread that does not come back even then is what hangs. It cannot be
 * ended from outside, and may yet use all that it was given, so the process ends.
 */
#ifndef ENGINE_PARALLEL_CREW_H
#define ENGINE_PARALLEL_CREW_H

#include "engine/backend/backend.h"

struct crew;

/* Runs on the device's thread; `device` is an index into crew_config.devices. */
typedef int (*crew_task)(void *context, int device, struct err *err);

/* In slices, each a wait of its own: time in which the whole process stood still counts as one. */
struct crew_patience {
    int slice_ms;
    int64_t first;        /* with a task that has never been done */
    int64_t after, times; /* with others: after + times * the longest so far; after an abort: after
                           */
};

struct crew_config {
    const struct device_config *devices; /* outlive the crew */
    int n_devices;
    void (*abort)(void *context); /* on any of the threads, any number of times */
    int (*place)(void *context, int device, struct err *err); /* err_context; returns err->code */
    void *context;
    const struct crew_patience
        *patience; /* NULL: an hour, then a minute and 20 times the longest */
    /* Says that a device hangs, and ends the process. NULL: says it on standard error. */
    void (*hang)(void *hang_context, const struct err *err);
    void *hang_context;
};

/* Errors: thread_start's, placed. */
int crew_start(const struct crew_config *config, struct crew **ret_crew, struct err *err);
void crew_stop(struct crew *crew); /* NULL is fine */

/* `task` on n devices from `first` on. One caller at a time. Errors: the task's, placed;
 * ERR_DEVICE_FAILED where a device did not answer in time. */
int crew_run(struct crew *crew, int first, int n, crew_task task, struct err *err);

#endif
