/* identity.h: what of a job may not change between a checkpoint and its resume. PURE. */
#ifndef ENGINE_TRAIN_IDENTITY_H
#define ENGINE_TRAIN_IDENTITY_H

#include <jansson.h>

#include "engine/base/safetensors.h"
#include "proto/job.h"

/* The training data's: the number of samples is there for the message. */
struct identity_data {
    uint64_t fingerprint;
    int64_t samples;
};

/* Adds the job's identity to a file's metadata (an object of strings). */
int identity_write(const struct job *job, struct identity_data data, json_t *metadata,
                   struct err *err);
/* Errors: ERR_CHECKPOINT at the document's path, naming the value then and the value now. `path` is
 * the checkpoint's. */
int identity_check(const struct job *job, struct identity_data data, const struct safetensors *file,
                   const char *path, struct err *err);

#endif
