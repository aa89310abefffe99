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

/* base[space]: where each space of the plan begins on the device. A failing node is named in the
 * error. */
int executor_run(struct executor *executor, void *const base[static SPACE_COUNT],
                 const struct step *step, struct collective *collective, struct err *err);

#endif
