/* tune.h: mode "tune": how long a step of a job takes in stages, with several split sizes. */
#ifndef ENGINE_TRAIN_TUNE_H
#define ENGINE_TRAIN_TUNE_H

#include "engine/train/trainer.h"

/* Measures a step on the first device alone, in stages without micro-batches, and pipelined with
 * micro-batches of several sizes, and writes tune.json (doc/job.md). Reports as trainer_run; what
 * is learnt meanwhile is dropped. Errors: trainer_run's. */
int tune_run(const struct trainer_config *config, struct err *err);

#endif
