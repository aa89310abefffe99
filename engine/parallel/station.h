/* station.h: a stage's layers on one device: their variables, a program for each graph that the
 * device will meet, and room for the micro-batches in flight. All calls on the device's thread.
 *
 * A micro-batch in flight has a slot from its first section to its last. What a section sends lies
 * in an outbox until every reader has it: as many outboxes, used in turn, as readers may lag.
 */
#ifndef ENGINE_PARALLEL_STATION_H
#define ENGINE_PARALLEL_STATION_H

#include "engine/exec/executor.h"
#include "engine/parallel/memory.h"
#include "engine/parallel/pipeline.h"

struct station_program {
    struct plan *plan; /* NULL: another device's */
    struct executor *executor;
};

struct station {
    const struct pipeline *pipeline;
    int device_index;
    struct worker worker;
    struct device *device;
    struct station_program *programs; /* one a graph of the pipeline */
    struct strategy_memory sizes;
    struct memory variables, arena, slots, outboxes;
};

/* Opens the device, builds the programs, allocates everything. On failure station_close still is
 * the caller's. */
int station_open(struct station *station, struct err *err);
/* Only `sizes`, without touching a device; sets the calling thread's team to the device's. */
int station_plan(struct station *station, struct err *err);
void station_close(struct station *station); /* planned, half-open and zeroed ones too */

/* Where a buffer of micro-batch i lies. */
void *station_buffer(const struct station *station, const struct plan_buffer *buffer, int i);
/* Runs a whole plan, or one section of micro-batch i. `run` gets its bases here. */
int station_run(struct station *station, const struct station_program *program, struct run *run,
                struct err *err);
int station_run_section(struct station *station, const struct station_program *program,
                        enum section section, int i, struct run *run, struct err *err);

/* The stage's own variables. */
int station_read(struct station *station, int variable, void *to, struct err *err);
int station_write(struct station *station, int variable, const void *from, struct err *err);

#endif
