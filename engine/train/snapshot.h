/* snapshot.h: variables on the host, as the tensors of a file. */
#ifndef ENGINE_TRAIN_SNAPSHOT_H
#define ENGINE_TRAIN_SNAPSHOT_H

#include "engine/base/safetensors.h"
#include "engine/parallel/strategy.h"

enum { /* sets of variable_kind */
       SNAPSHOT_WEIGHTS = 1 << VARIABLE_PARAMETER | 1 << VARIABLE_BUFFER,
       SNAPSHOT_STATE = 1 << VARIABLE_OPTIMIZER
};

struct snapshot {
    struct safetensor *tensors; /* names are the model's */
    size_t n;
    void *memory;
};

/* Reads the variables of these kinds from the controller, in the model's order. Free with
 * snapshot_done. */
int snapshot_read(struct strategy *strategy, const struct model *model, unsigned kinds,
                  struct snapshot *ret_snapshot, struct err *err);
void snapshot_done(struct snapshot *snapshot);

/* A hash over names and elements, whatever the tensors' order. Several files: add. */
uint64_t snapshot_hash(const struct safetensor *tensor);

#endif
