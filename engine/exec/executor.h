/* executor.h: runs a plan on a device. The step loop allocates nothing. All calls on the device's
 * thread. */
#ifndef ENGINE_EXEC_EXECUTOR_H
#define ENGINE_EXEC_EXECUTOR_H

#include "engine/plan/plan.h"

struct executor;

/* Creates every kernel of the plan. `plan` and `device` are borrowed. */
int executor_new(struct device *device, const struct plan *plan, struct executor **ret_executor,
                 struct err *err);
void executor_free(struct executor *executor);

/* What a run is given. */
struct run {
    void *const *base; /* [SPACE_COUNT]: where each space of the plan begins on the device */
    const struct step *step;
    struct collective *collective; /* the other replicas; NULL: there is none */
    struct collective *stages;     /* the other stages; NULL: there is none */
};

/* The whole plan. A failing node is named in the error. */
int executor_run(struct executor *executor, const struct run *run, struct err *err);
/* One section of it. Of one micro-batch they run in their order, with the same slot. */
int executor_run_section(struct executor *executor, enum section section, const struct run *run,
                         struct err *err);
/* The whole plan, and how long each of its steps took by a clock of base/clock.h. */
int executor_time(struct executor *executor, const struct run *run, double (*clock)(void),
                  double *ret_seconds, struct err *err);

#endif
