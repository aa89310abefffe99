/* prepare.h: all of a job that is known before a device is touched: model, data, how many steps of
 * which batch sizes. */
#ifndef ENGINE_TRAIN_PREPARE_H
#define ENGINE_TRAIN_PREPARE_H

#include "engine/data/loader.h"
#include "engine/train/trainer.h"

enum { PREPARED_BATCHES = 8 }; /* two sizes in four places of a window */

struct prepared {
    struct model *model;
    struct dataset *train;                                 /* NULL: the job does not train */
    struct dataset *validation;                            /* validation NULL: none */
    int64_t epoch_batches;                                 /* of the training data */
    int64_t epoch_steps, steps, epochs;                    /* optimizer steps; epochs: begun ones */
    struct strategy_batch train_batches[PREPARED_BATCHES]; /* distinct ones */
    int64_t eval_batches[2];                               /* distinct sizes: full, last */
    struct device_config devices[LIMIT_DEVICES];           /* as the job runs them */
    struct strategy_config strategy; /* points into this struct and the trainer's config */
};

/* Opens the data, builds the model. `ret_prepared` must not move afterwards; free it with
 * prepared_done, also after a failure. */
int prepare(const struct trainer_config *config, struct prepared *ret_prepared, struct err *err);
void prepared_done(struct prepared *prepared);

/* The loaders' configurations: training from step `step` on; one pass over the validation data. */
struct loader_config prepared_train_loader(const struct prepared *prepared, int64_t step);
struct loader_config prepared_eval_loader(const struct prepared *prepared);

#endif
