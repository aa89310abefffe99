/* station.h: a stage's layers on one device: their variables, what it runs for each graph that the
 * device will meet, and room for the micro-batches in flight. All calls on the device's thread.
 *
 * A micro-batch in flight has a slot from its first section to its last. What a section sends lies
 * in an outbox until every reader has it: as many outboxes, used in turn, as readers may lag.
 */
#ifndef ENGINE_PARALLEL_STATION_H
#define ENGINE_PARALLEL_STATION_H

#include "engine/parallel/compiled.h"
#include "engine/parallel/memory.h"
#include "engine/parallel/pipeline.h"

struct station {
    const struct pipeline *pipeline;
    int device_index;
    struct worker worker;
    struct device *device;
    struct compiled_list compiled; /* by the graphs of the pipeline */
    struct strategy_memory sizes;
    struct memory variables, arena, slots, outboxes;
};

/* Builds the plans, and `sizes`, what station_open allocates for them; touches no device, and sets
 * the calling thread's team to the device's. On failure station_close still is the caller's. */
int station_plan(struct station *station, struct err *err);
/* Then opens the device, creates the kernels, allocates everything. The same on failure. */
int station_open(struct station *station, struct err *err);
void station_close(struct station *station); /* planned, half-open and zeroed ones too */

/* Where the spaces of micro-batch i begin. */
struct station_bases {
    void *at[SPACE_COUNT];
};
struct station_bases station_bases(const struct station *station, int i);
/* Where a buffer of micro-batch i lies. */
void *station_buffer(const struct station *station, const struct plan_buffer *buffer, int i);

/* The stage's own variables. */
int station_read(struct station *station, int variable, void *to, struct err *err);
int station_write(struct station *station, int variable, const void *from, struct err *err);

#endif
