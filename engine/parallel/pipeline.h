/* pipeline.h: all that is known of a job in stages before a device is touched: which device runs
 * which layers on which rows of which micro-batch, in what order, by which graph. PURE.
 */
#ifndef ENGINE_PARALLEL_PIPELINE_H
#define ENGINE_PARALLEL_PIPELINE_H

#include "engine/parallel/microbatch.h"
#include "engine/parallel/placement.h"
#include "engine/parallel/strategy.h"
#include "engine/parallel/timetable.h"
#include "engine/plan/plan.h"

/* A stage's graph of one number of rows. Without rows, STEP_FIRST makes all gradients zero, for a
 * worker that has no rows of a window's first micro-batch; STEP_END ends a window: reduction,
 * clipping, update. */
struct pipeline_graph {
    struct graph *graph;
    uint64_t devices; /* bit d: device d runs it */
};

struct pipeline {
    const struct strategy_config *config;
    struct placement placement;
    struct microbatch_rule rule;
    struct arena *arena;
    struct crossings crossings;
    struct variable_map *maps; /* by stage */
    struct pipeline_graph *graphs;
    size_t n_graphs, graphs_capacity;
    struct timetable **tables; /* by micro-batches and training */
    size_t n_tables, tables_capacity;
    int slots[LIMIT_DEVICES];         /* by stage: micro-batches in flight there at once */
    int outbox_depth[LIMIT_DEVICES];  /* by stage: micro-batches whose readers may be behind */
    int64_t most_rows[LIMIT_DEVICES]; /* by device */
};

/* `config` is borrowed. Errors: placement_build's, graph_build's, ERR_NOMEM. On failure
 * pipeline_done still is the caller's. */
int pipeline_build(const struct strategy_config *config, struct pipeline *ret_pipeline,
                   struct err *err);
void pipeline_done(struct pipeline *pipeline); /* half-built and zeroed ones too */

/* A pipeline's rows of a batch of n samples, and how many micro-batches they make. */
struct microbatch_rows pipeline_rows(const struct pipeline *pipeline, int64_t n, int index);
int pipeline_microbatches(const struct pipeline *pipeline, int64_t n, int index);
/* A worker's rows of a micro-batch. */
struct microbatch_rows pipeline_worker_rows(const struct pipeline *pipeline, int64_t n,
                                            struct worker worker, int microbatch);
/* What a micro-batch is in its window. */
enum step_part pipeline_part(enum step_part batch, int microbatch);
/* The index of a graph, which is one of the list's. */
size_t pipeline_graph(const struct pipeline *pipeline, int stage, int64_t rows, bool training,
                      enum step_part part);
/* The lists for that many micro-batches, at least 1. */
const struct timetable *pipeline_timetable(const struct pipeline *pipeline, int microbatches,
                                           bool training);
/* A training step's, of the largest batch. */
double pipeline_flops(const struct pipeline *pipeline);

#endif
