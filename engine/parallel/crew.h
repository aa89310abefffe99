/* crew.h: one thread a device, and a task that all of them do at once.
 *
 * crew_run hands the task to the threads and returns when all are done. When one fails, the crew's
 * `abort` is called at once, so that those that wait for it come back too, with ERR_CANCELLED; the
 * first error that is not that is the caller's, with `place` in front («replica 1 on cpu:1: …»).
 */
#ifndef ENGINE_PARALLEL_CREW_H
#define ENGINE_PARALLEL_CREW_H

#include "engine/backend/backend.h"

struct crew;

/* Runs on the device's thread; `device` is an index into crew_config.devices. */
typedef int (*crew_task)(void *context, int device, struct err *err);

struct crew_config {
    const struct device_config *devices; /* outlive the crew */
    int n_devices;
    void (*abort)(void *context); /* on any of the threads, any number of times */
    int (*place)(void *context, int device, struct err *err); /* err_context; returns err->code */
    void *context;
};

/* Errors: thread_start's, placed. */
int crew_start(const struct crew_config *config, struct crew **ret_crew, struct err *err);
void crew_stop(struct crew *crew); /* NULL is fine */

/* `task` on n devices from `first` on. One caller at a time. */
int crew_run(struct crew *crew, int first, int n, crew_task task, struct err *err);

#endif
