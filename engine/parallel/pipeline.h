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

/* A stage's graph of one number of rows. Without rows it is that of a worker that has none of a
 * micro-batch which the first pipeline has: STEP_FIRST makes all gradients zero, both let buffers
 * move as that pipeline's do where they do so without samples (spectral_norm.c). STEP_RECORD and
 * STEP_END end a window: what is recorded of variables; reduction, clipping, update. */
struct pipeline_graph {
    struct graph *graph;
    uint64_t devices; /* bit d: device d runs it */
};

/* What tells one graph from another. */
struct pipeline_key {
    int stage;
    int64_t rows;
    bool training;
    enum step_part part;
    bool keeps_buffers; /* the first pipeline has not so many micro-batches */
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
/* A worker's rows of a micro-batch; none behind its pipeline's last. */
struct microbatch_rows pipeline_worker_rows(const struct pipeline *pipeline, int64_t n,
                                            struct worker worker, int microbatch);
/* What a worker runs of a micro-batch of n samples, where `part` is what the batch is in its
 * window. */
struct pipeline_key pipeline_key(const struct pipeline *pipeline, int64_t n, struct worker worker,
                                 int microbatch, bool training, enum step_part part);
/* The index of a graph, which is one of the list's. */
size_t pipeline_graph(const struct pipeline *pipeline, const struct pipeline_key *key);
/* The lists for that many micro-batches, at least 1. */
const struct timetable *pipeline_timetable(const struct pipeline *pipeline, int microbatches,
                                           bool training);
/* A training step's, of the largest batch. */
double pipeline_flops(const struct pipeline *pipeline);

#endif
