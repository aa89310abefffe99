/* choose.h: what a document leaves open of mode `stages`: where the model is cut, and in how many
 * micro-batches a batch. PURE.
 *
 * The choice is by estimate.h, so that the same document on as many devices always runs the same
 * way; it is written into the job, and with it into job.json. `microbatches` that are measured are
 * tuning's.
 */
#ifndef ENGINE_PARALLEL_CHOOSE_H
#define ENGINE_PARALLEL_CHOOSE_H

#include "proto/job.h"

/* Of a job that runs on `n_devices`, each with so many bytes of memory. Sets `split`,
 * `devices` where it is "all", and `microbatches`: 1 where a BatchNorm is trained, unless the
 * document says "auto". Nothing where the mode is another. Errors: model_build's, graph_build's,
 * balance_find's, ERR_NOMEM. */
int choose_stages(struct job *job, size_t n_devices, int64_t memory_bytes, struct err *err);

#endif
