/* choose.h: what a document leaves open of mode `stages`: where the model is cut, and in how many
 * micro-batches a batch. PURE.
 *
 * The choice is by estimate.h, so that the same document on as many devices always runs the same
 * way; then, where a run begins, by the times of its own layers on its own device. What was chosen
 * is written into the job, and with it into job.json.
 */
#ifndef ENGINE_PARALLEL_CHOOSE_H
#define ENGINE_PARALLEL_CHOOSE_H

#include "engine/graph/model.h"
#include "engine/parallel/estimate.h"
#include "proto/job.h"

/* Of a job that runs on `n_devices`, each with so many bytes of memory. Sets `split`,
 * `devices` where it is "all", and `microbatches`: 1 where a BatchNorm is trained, unless the
 * document says "auto". Nothing where the mode is another. Errors: model_build's, graph_build's,
 * balance_find's, ERR_NOMEM. */
int choose_stages(struct job *job, size_t n_devices, int64_t memory_bytes, struct err *err);
/* Chooses anew, by the times of `source`, what choose_stages has chosen by its own: where the model
 * is cut, and in how many micro-batches, among the number that it has and the next smaller and
 * larger ones. Errors: as choose_stages; the source's. */
int choose_again(struct job *job, size_t n_devices, int64_t memory_bytes,
                 const struct estimate_source *source, struct err *err);

#endif
