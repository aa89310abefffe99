/* collective.h: how replicas, or stages, come to sums and to each other's parts. */
#ifndef ENGINE_BACKEND_COLLECTIVE_H
#define ENGINE_BACKEND_COLLECTIVE_H

#include <stddef.h>

#include "proto/err.h"

struct device; /* the backend's own */

/* The other replicas, or stages, as kernels see them. Implemented by engine/comm. */
struct collective {
    int rank, size;
    /* Sums `count` floats over all ranks in one order, in place, everywhere the same bits. Blocks
     * until all ranks have called. Errors: ERR_CANCELLED after an abort. */
    int (*all_reduce)(struct collective *self, float *data, size_t count, struct err *err);
    /* The same, but returns at once: `data` is the sum when reduce_finish has returned, and nobody
     * touches it until then. All ranks start the same sums in the same order. */
    int (*reduce_start)(struct collective *self, float *data, size_t count, struct err *err);
    int (*reduce_finish)(struct collective *self, struct err *err); /* blocks; all that started */
    /* `data`: `count` floats in parts of `share`, one a rank (the last parts may be short or
     * empty). Each rank brings its own part and gets the others'. Blocks, fails as all_reduce. */
    int (*all_gather)(struct collective *self, float *data, size_t count, size_t share,
                      struct err *err);
    /* Sums one number over all ranks in rank order. Blocks and fails as all_reduce does. */
    int (*sum)(struct collective *self, double *value, struct err *err);
};

struct group; /* of devices that sum among themselves; the backend's own */

/* How a backend's devices sum without the host (GPUs: NCCL). A collective of theirs only enqueues:
 * what it brings is there for kernels that are enqueued behind it; it has no `sum`. */
struct backend_collectives {
    int (*group_new)(int size, struct group **ret_group, struct err *err); /* any thread */
    void (*group_free)(struct group *group);                               /* when all have left */
    /* Ends what is under way, and makes joins fail. Any thread, any number of times. */
    void (*group_abort)(struct group *group);
    /* On the device's thread, all ranks at once: blocks. Errors: ERR_CANCELLED, ERR_DEVICE_FAILED.
     */
    int (*join)(struct group *group, int rank, struct device *device,
                struct collective **ret_collective, struct err *err);
    void (*leave)(struct collective *collective); /* ahead of the device's close */
};

#endif
