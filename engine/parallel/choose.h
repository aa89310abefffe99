/* choose.h: what a document leaves open of mode `stages`: where the model is cut, and in how many
 * micro-batches a batch. PURE.
 *
 * The choice is by estimate.h, so that the same document on as many devices always runs the same
 * way; it is written into the job, and with it into job.json. `microbatches` that are measured are
 * tuning's.
 */
#ifndef ENGINE_PARALLEL_CHOOSE_H
#define ENGINE_PARALLEL_CHOOSE_H

#include "engine/graph/model.h"
#include "engine/parallel/balance.h"
#include "proto/job.h"

/* Of a job that runs on `n_devices`, each with so many bytes of memory. Sets `split`,
 * `devices` where it is "all", and `microbatches`: 1 where a BatchNorm is trained, unless the
 * document says "auto". Nothing where the mode is another. Errors: model_build's, graph_build's,
 * balance_find's, ERR_NOMEM. */
int choose_stages(struct job *job, size_t n_devices, int64_t memory_bytes, struct err *err);
/* Sets the times of `layers`, one a layer, for micro-batches of so many rows. */
typedef int (*choose_measure)(void *context, const struct model *model, int64_t rows,
                              struct balance_layer *layers, struct err *err);

/* Cuts a job anew whose split was chosen, by measured times where choose_stages estimates them; its
 * micro-batches stay. Errors: as choose_stages; measure's. */
int choose_split(struct job *job, size_t n_devices, int64_t memory_bytes, choose_measure measure,
                 void *context, struct err *err);

#endif
