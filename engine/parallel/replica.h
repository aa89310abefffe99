/* replica.h: one whole copy of the model on one device: its memory, and what it runs for each graph
 * that it will meet. All calls on the device's thread. */
#ifndef ENGINE_PARALLEL_REPLICA_H
#define ENGINE_PARALLEL_REPLICA_H

#include "engine/parallel/compiled.h"
#include "engine/parallel/host_room.h"
#include "engine/parallel/memory.h"
#include "engine/parallel/observed.h"
#include "engine/parallel/shapes.h"

struct replica {
    int rank;
    const struct strategy_config *config;
    const struct shapes *shapes;
    const struct variable_map *map;
    struct device *device;
    struct compiled_list compiled; /* by the graphs of shapes */
    struct strategy_memory sizes;
    struct memory variables, arena, target, data[MODEL_MAX_INPUTS];
};

struct chunk {
    struct batch batch;   /* this replica's part, on the host; n 0: it rests */
    struct shape_key key; /* of batch.n samples */
    struct step step;
    struct collective *collective;
};

/* Builds the plans, and `sizes`, what replica_open allocates for them; touches no device, and sets
 * the calling thread's team to the device's. On failure replica_close still is the caller's. */
int replica_plan(struct replica *replica, struct err *err);
/* Then opens the device, creates the kernels, allocates everything. The same on failure. */
int replica_open(struct replica *replica, struct err *err);
void replica_close(struct replica *replica); /* planned, half-open and zeroed ones too */

struct replica_outputs {         /* where the host wants them */
    struct host_samples samples; /* an evaluation's */
    struct observed *observed;   /* a training's */
};

/* One chunk: *ret_loss is the sum of its losses. */
int replica_run(struct replica *replica, const struct chunk *chunk, double *ret_loss,
                const struct replica_outputs *outputs, struct err *err);

/* All elements of a variable in plain order, on the host: those that this device has. */
int replica_read(struct replica *replica, int variable, void *to, struct err *err);
int replica_write(struct replica *replica, int variable, const void *from, struct err *err);

#endif
