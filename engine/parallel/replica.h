/* replica.h: one whole copy of the model on one device: its memory, and a program (plan and
 * executor) for each graph that it will meet. All calls on the device's thread. */
#ifndef ENGINE_PARALLEL_REPLICA_H
#define ENGINE_PARALLEL_REPLICA_H

#include "engine/exec/executor.h"
#include "engine/parallel/host_room.h"
#include "engine/parallel/memory.h"
#include "engine/parallel/observed.h"
#include "engine/parallel/shapes.h"

struct program {
    struct plan *plan; /* NULL: another replica's */
    struct executor *executor;
};

struct replica {
    int rank;
    const struct strategy_config *config;
    const struct shapes *shapes;
    const struct variable_map *map;
    struct device *device;
    struct program *programs; /* one a graph of shapes */
    struct memory variables, arena, target, data[MODEL_MAX_INPUTS];
};

struct chunk {
    struct batch batch;   /* this replica's part, on the host; n 0: it rests */
    struct shape_key key; /* of batch.n samples */
    struct step step;
    struct collective *collective;
};

/* Opens the device, builds the programs, allocates everything. On failure replica_close still is
 * the caller's. */
int replica_open(struct replica *replica, struct err *err);
void replica_close(struct replica *replica); /* half-open and zeroed ones too */

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

/* What replica_open would allocate, without touching a device; sets the calling thread's team to
 * the device's. */
int replica_plan(const struct strategy_config *config, const struct shapes *shapes,
                 const struct variable_map *map, int rank, struct strategy_memory *ret_memory,
                 struct err *err);

#endif
