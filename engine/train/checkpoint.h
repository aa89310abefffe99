/* checkpoint.h: checkpoints/step-00000500/{weights,state}.safetensors under the output directory.
 *
 * A checkpoint is written into a temporary directory beside its place, fsynced, and appears by
 * rename: complete or not at all. weights: parameters and buffers as a PyTorch state_dict; state:
 * optimizer state, and in its metadata the position (step, epoch), the identity of job and data
 * that a resume checks, and a hash of both files' tensors.
 */
#ifndef ENGINE_TRAIN_CHECKPOINT_H
#define ENGINE_TRAIN_CHECKPOINT_H

#include "engine/parallel/strategy.h"
#include "engine/train/identity.h"

struct checkpoint_position {
    int64_t step; /* optimizer steps made */
    struct identity_data data;
};

/* Writes the final or best weights of the strategy to `path`, by rename. */
int checkpoint_write_weights(struct strategy *strategy, const struct model *model, const char *path,
                             struct err *err);
/* Loads weights ("module." on every key is stripped once; mixed keys, missing keys, wrong shapes
 * are errors; unexpected ones too when strict). Errors: ERR_WEIGHTS_INVALID, ERR_IO. */
int checkpoint_load_weights(struct strategy *strategy, const struct model *model, const char *path,
                            bool strict, struct err *err);

/* Writes a checkpoint and removes all but the newest `keep`. ret_path (LIMIT_PATH_BYTES) receives
 * its directory. */
int checkpoint_save(struct strategy *strategy, const struct model *model, const char *output,
                    const struct checkpoint_position *position, int64_t keep, char *ret_path,
                    struct err *err);
/* Restores the newest whole checkpoint under `output`; a torn one is passed over with a warning in
 * `warning` (512 bytes, "" if none). *ret_position->step 0: there is none. What a killed run left
 * (temporary directories, checkpoints beyond the job's `keep`) is removed. Errors: ERR_CHECKPOINT
 * where it is of another model, optimizer type, batch size, seed or data set, naming both values;
 * ERR_IO, ERR_NOMEM where a checkpoint cannot be read now, damaged or not. */
int checkpoint_resume(struct strategy *strategy, const struct model *model, const char *output,
                      struct identity_data data, struct checkpoint_position *ret_position,
                      char *warning, struct err *err);

/* What choices_dump put into the newest whole checkpoint: a new reference; NULL: there is no
 * checkpoint. Changes nothing, so the directory need not be locked. Errors: ERR_IO, ERR_NOMEM. */
int checkpoint_choices(const char *output, json_t **ret_choices, struct err *err);

/* Removes every checkpoint: a run that does not resume begins the directory anew. */
int checkpoint_clear(const char *output, struct err *err);

#endif
