/* shapes.h: which graphs a job runs, and which device runs which: from the batch sizes to come, by
 * torch.chunk. A batch is cut in one chunk a device, or in the job's shards, of which a device has
 * a run. */
#ifndef ENGINE_PARALLEL_SHAPES_H
#define ENGINE_PARALLEL_SHAPES_H

#include "engine/graph/graph.h"
#include "engine/parallel/strategy.h"

enum {
    SHAPES_BUCKET_BYTES = 1 << 20
}; /* of an all-reduce: gradients are still in a core's cache */

/* What tells one graph of a job from another. */
struct shape_key {
    int64_t chunk; /* samples; 0: a replica that rests in training, or what begins or ends a step
                      that is cut in shards */
    bool training;
    enum step_part part;
    bool keeps_buffers;
    int owner; /* whose part of the optimizer's state this updates; 0 where it is not cut */
};

struct shape_graph {
    struct graph *graph;
    uint64_t replicas; /* bit r: replica r meets it */
};

struct shapes {
    struct shape_graph *list;
    size_t n;
    int64_t *largest; /* a chunk of replica r has at most that many samples */
};

/* How many chunks a batch is cut in. */
int shapes_chunks(const struct strategy_config *config);
/* Of a chunk of `n` samples, the one with this number. */
struct shape_key shapes_key(const struct strategy_config *config, int number, int64_t n,
                            bool training, enum step_part part);
/* Of a batch that is cut in shards: what a device that has not the first one runs ahead of its own,
 * so that its buffers move as the first shard's (spectral_norm.c); behind the last one of a step,
 * where something is recorded; then the update. */
struct shape_key shapes_begin(void);
struct shape_key shapes_record(void);
struct shape_key shapes_update(const struct strategy_config *config, int device);
/* In how many parts devices share the optimizer's state; 1: each has all of it. */
int shapes_optimizer_parts(const struct strategy_config *config);

/* Builds every distinct graph. Errors: graph_build's. */
int shapes_build(const struct strategy_config *config, struct shapes *ret_shapes, struct err *err);
void shapes_done(struct shapes *shapes);
/* The index of the graph, which is one of the list's. */
size_t shapes_find(const struct shapes *shapes, const struct shape_key *key);

#endif
