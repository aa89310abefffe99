/* trainer.h: a job from its first to its last step: load, resume, steps, validation, checkpoints,
 * weights. */
#ifndef ENGINE_TRAIN_TRAINER_H
#define ENGINE_TRAIN_TRAINER_H

#include <signal.h>

#include "engine/parallel/strategy.h"
#include "proto/report.h"

/* Where the trainer speaks; all may be called only from trainer_run's thread. */
struct trainer_sink {
    void (*report)(void *context, const struct report *report);
    void (*say)(void *context,
                const char *line); /* a line for the log: traces, «Let's use 2 devices», warnings */
    void *context;
    void (*hang)(void *context, const struct err *err); /* as strategy_config's */
};

struct trainer_config {
    const struct job *job;
    const struct backend *backend;
    const struct device_config *devices;
    int n_devices;
    const char *output; /* made when missing; holds a lock while the job runs */
    const volatile sig_atomic_t
        *stop; /* non-zero: a checkpoint after the running step, then ERR_CANCELLED */
    struct trainer_sink sink;
};

/* Errors: everything a job can meet; the caller reports them (REPORT_FAILED), the trainer all else.
 */
int trainer_run(const struct trainer_config *config, struct err *err);

/* What `traind-worker plan` shows: opens the data, builds the model, plans every shape; no device
 * is touched. */
struct trainer_plan {
    int64_t parameters, steps, steps_per_epoch;
    double flops_per_step;
    struct strategy_memory *devices; /* n_devices; freed with trainer_plan_done */
    size_t input_bytes;              /* of the loader's batches, on the host */
};
int trainer_plan(const struct trainer_config *config, struct trainer_plan *ret_plan,
                 struct err *err);
void trainer_plan_done(struct trainer_plan *plan);

#endif
