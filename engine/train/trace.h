/* trace.h: the lines of the DataParallel tutorial: which device got which part of a batch. */
#ifndef ENGINE_TRAIN_TRACE_H
#define ENGINE_TRAIN_TRACE_H

#include "engine/train/prepare.h"

/* «Let's use 2 devices», where there are several and the job asks for shapes. */
void trace_devices(const struct trainer_config *config);
/* One batch: each chunk's sizes in device order, then the whole's. */
void trace_batch(const struct trainer_config *config, const struct prepared *prepared,
                 const struct batch *batch, const struct strategy_result *result);
/* A warning for each pattern of no_decay that no parameter's name matches. */
void trace_unmatched(const struct trainer_config *config, const struct prepared *prepared);
/* One warning where replicas' devices are so unequal that the largest waits: the smallest has under
 * 75 % of its memory or cores. */
void trace_balance(const struct trainer_config *config);
/* One warning for the batch sizes that leave devices without a chunk. */
void trace_resting(const struct trainer_config *config, const struct prepared *prepared);

#endif
