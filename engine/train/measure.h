/* measure.h: how long a step of a job takes on its devices, as it is: nothing is logged or saved.
 */
#ifndef ENGINE_TRAIN_MEASURE_H
#define ENGINE_TRAIN_MEASURE_H

#include "engine/train/trainer.h"

/* A job whose first batch is trained again and again. */
struct measuring;

/* Up to, and without, the first step; weights are the job's initial ones. `config` is borrowed.
 * Errors: trainer_run's. */
int measure_open(const struct trainer_config *config, struct measuring **ret_measuring,
                 struct err *err);
void measure_close(struct measuring *measuring); /* NULL is fine */
/* One step; the loss is the batch's, before the update. Errors: trainer_run's; ERR_CANCELLED when
 * config->stop is set. */
int measure_step(struct measuring *measuring, struct strategy_result *ret_result, struct err *err);

struct measured { /* borrowed, until measure_close */
    const struct model *model;
    struct strategy *strategy;
    const struct batch *batch;
};
struct measured measure_what(const struct measuring *measuring);

#endif
