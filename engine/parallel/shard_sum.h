/* shard_sum.h: the gradients of one device's shards, added as they come, then over all devices.
 *
 * Each shard leaves its gradients in the same variables. A sum that is one whole node of the tree
 * (comm/tree.h) waits in a slot for its other half; what is left when the device's last shard has
 * run is what it brings to the others. All calls on the device's thread.
 */
#ifndef ENGINE_PARALLEL_SHARD_SUM_H
#define ENGINE_PARALLEL_SHARD_SUM_H

#include "engine/comm/comm.h"
#include "engine/parallel/memory.h"
#include "engine/parallel/strategy.h"
#include "engine/plan/plan.h"

struct shard_sum {
    struct memory slots;
    float *gradients;   /* all variables of gradients, as one run */
    float *accumulated; /* over a window's batches; NULL: none are */
    float *own;         /* this device's part of the window so far; NULL: nobody looks at it */
    size_t count;       /* of floats in the run, and in a slot */
    struct term terms[TREE_MAX_DEPTH * 2];
    int n_terms;
};

/* What the slots of this device take; 0 where the job has no shards. */
size_t shard_sum_bytes(const struct strategy_config *config, const struct variable_map *map,
                       int device);
/* `variables`: the device's. Errors: ERR_NOMEM. */
int shard_sum_open(struct shard_sum *sum, const struct strategy_config *config,
                   const struct variable_map *map, int device, struct device *opened,
                   void *variables, struct err *err);
void shard_sum_close(struct shard_sum *sum, const struct backend *backend, struct device *opened);

/* Takes the gradients of the next shard; `last`: no shard of this batch follows here. */
void shard_sum_add(struct shard_sum *sum, int shard, bool last);
/* Ahead of shard_sum_finish: this batch's part is added to the device's own. `first`: of a window.
 */
void shard_sum_keep(struct shard_sum *sum, bool first);
/* The device's own part is where its gradients were, and they are where it was; called again, all
 * is back. Both are there: something is recorded of gradients. */
void shard_sum_swap(struct shard_sum *sum);
/* Every device's gradients become those of all shards, and of the window's batches before where
 * this one ends it. Blocks, fails as comm_sum. */
int shard_sum_finish(struct shard_sum *sum, struct comm *comm, int device, enum step_part part,
                     struct err *err);

#endif
