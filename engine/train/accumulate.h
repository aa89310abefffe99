/* accumulate.h: one optimizer step: a window of batches whose gradients are added up. */
#ifndef ENGINE_TRAIN_ACCUMULATE_H
#define ENGINE_TRAIN_ACCUMULATE_H

#include "engine/train/prepare.h"

struct accumulated { /* over the window */
    double loss;     /* the mean over all its samples; under "sum" the sum of its batches' losses */
    int64_t samples;
    int n_replicas;
    struct replica_result replicas[LIMIT_DEVICES];
    const struct strategy_record *records; /* of its last batch, valid until the next step */
    size_t n_records;
};

/* Runs the batches of one step. `step`: its number, seed and learning rate are given, the rest is
 * filled in. Traces the batches' shapes where the job asks. Errors: the strategy's, the loader's;
 * ERR_DATA_INVALID where a mean would be over no target that counts. */
int accumulate_step(const struct trainer_config *config, const struct prepared *prepared,
                    struct strategy *strategy, struct loader *loader, struct step step,
                    struct accumulated *ret_made, struct err *err);

#endif
