/* observed.h: what train.record asks for, as each device sees it while a batch runs. A tensor that
 * comes in pieces (micro-batches, shards) is one tensor here: their statistics are joined as they
 * come. Each device's are its thread's.
 */
#ifndef ENGINE_PARALLEL_OBSERVED_H
#define ENGINE_PARALLEL_OBSERVED_H

#include "engine/parallel/strategy.h"

struct moments; /* of what a device has seen of a tensor so far */

struct observed {
    const struct model *model;
    int n_devices;
    struct moments *seen;            /* by device, then by model->recorded */
    struct strategy_record *records; /* the same, as they are shown */
};

/* On failure observed_done still is the caller's. Errors: ERR_NOMEM. */
int observed_open(const struct strategy_config *config, struct observed *ret_observed,
                  struct err *err);
void observed_done(struct observed *observed); /* a zeroed one too */

void observed_clear(struct observed *observed); /* nothing has been seen, by no device */
/* One more piece: the STATISTIC_COUNT statistics that are graph->recorded[i]'s. */
void observed_add(struct observed *observed, int device, const struct graph *graph, int i,
                  const double *statistics);
/* Sets the result's records: of the devices that have seen any. */
void observed_show(struct observed *observed, struct strategy_result *ret_result);

#endif
