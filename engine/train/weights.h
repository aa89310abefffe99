/* weights.h: what weights.c shares with checkpoint.c. */
#ifndef ENGINE_TRAIN_WEIGHTS_H
#define ENGINE_TRAIN_WEIGHTS_H

#include "engine/base/safetensors.h"
#include "engine/parallel/strategy.h"

/* Writes parameters and buffers to `path` itself, fsynced. *ret_hash (or NULL): the sum of
 * snapshot_hash. */
int weights_write(struct strategy *strategy, const struct model *model, const char *path,
                  uint64_t *ret_hash, struct err *err);

/* Whether a file's tensor (NULL: missing) can be the variable. Errors: `code`, naming path, found
 * and wanted. */
int weights_check(const struct safetensor *tensor, const struct variable *variable,
                  const char *path, int code, struct err *err);

#endif
