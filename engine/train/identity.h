/* identity.h: what of a job may not change between a checkpoint and its resume. PURE. */
#ifndef ENGINE_TRAIN_IDENTITY_H
#define ENGINE_TRAIN_IDENTITY_H

#include <jansson.h>

#include "engine/base/safetensors.h"
#include "proto/job.h"

/* Adds the job's identity to a file's metadata (an object of strings). */
int identity_write(const struct job *job, uint64_t dataset_fingerprint, json_t *metadata,
                   struct err *err);
/* Errors: ERR_CHECKPOINT at the document's path, naming the value then and the value now. `path` is
 * the checkpoint's. */
int identity_check(const struct job *job, uint64_t dataset_fingerprint,
                   const struct safetensors *file, const char *path, struct err *err);

#endif
