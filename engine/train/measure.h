/* measure.h: how long a step of a job takes on its devices, as it is: nothing is logged or saved.
 */
#ifndef ENGINE_TRAIN_MEASURE_H
#define ENGINE_TRAIN_MEASURE_H

#include "engine/train/trainer.h"

struct measure_rule {
    int repeats; /* at least 1 */
    int batches; /* of one repeat, at least 1 */
};

/* Trains one batch again and again, from the job's initial weights: once unmeasured, then `repeats`
 * times `batches` steps; ret_seconds[repeats] are seconds a step. Set-up and data are not measured.
 * Errors: trainer_run's; ERR_CANCELLED when config->stop is set. */
int measure_steps(const struct trainer_config *config, const struct measure_rule *rule,
                  double *ret_seconds, struct err *err);

#endif
