/* results.h: what a plan has left for the host on its device, read from there. On the device's
 * thread. Errors: those of the backend's `read`. */
#ifndef ENGINE_PARALLEL_RESULTS_H
#define ENGINE_PARALLEL_RESULTS_H

#include "engine/parallel/host_room.h"
#include "engine/parallel/observed.h"
#include "engine/plan/plan.h"

struct results {
    const struct backend *backend;
    struct device *device;
    const struct plan *plan;
    void *const *base; /* [SPACE_COUNT], as executor_run had it */
};

/* The sum of the losses of n samples, and each one's where `losses` is not NULL; 0 where the plan
 * has no loss. */
int results_loss(const struct results *results, int64_t n, double *losses, double *ret_sum,
                 struct err *err);
/* An evaluation's predictions of n samples, and their outputs where they are wanted. */
int results_samples(const struct results *results, int64_t n, const struct host_samples *to,
                    struct err *err);
/* What is recorded, of the kinds whose bit (1 << enum recorded_kind) is set, as seen by `device`.
 */
int results_observe(const struct results *results, unsigned kinds, int device,
                    struct observed *observed, struct err *err);

#endif
