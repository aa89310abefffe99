/* choices.h: what is chosen by measuring when a job begins, and kept when it resumes. */
#ifndef ENGINE_TRAIN_CHOICES_H
#define ENGINE_TRAIN_CHOICES_H

#include <jansson.h>

#include "engine/train/trainer.h"

/* Settles what the document of a job in stages leaves open, where it is cut and in how many
 * micro-batches: as its newest checkpoint says, if it resumes and has one for as many stages; else
 * by the times of its layers on the first device, which has `memory_bytes`. `job` is the config's.
 * Says what was measured. Errors: the device's, choose_again's, the checkpoint's. */
int choices_settle(const struct trainer_config *config, struct job *job, int64_t memory_bytes,
                   struct err *err);

/* What a resume reuses, for a checkpoint's metadata: a new reference; NULL without memory. */
json_t *choices_dump(const struct job *job);

#endif
