/* shapes.h: which graphs a job runs, and which replica runs which: from the batch sizes to come, by
 * torch.chunk. */
#ifndef ENGINE_PARALLEL_SHAPES_H
#define ENGINE_PARALLEL_SHAPES_H

#include "engine/graph/graph.h"
#include "engine/parallel/strategy.h"

enum {
    SHAPES_BUCKET_BYTES = 1 << 20
}; /* of an all-reduce: gradients are still in a core's cache */

struct shape_graph {
    struct graph *graph; /* of options.batch samples, 0: a replica that rests in training */
    uint64_t replicas;   /* bit r: replica r meets it */
};

struct shapes {
    struct shape_graph *list;
    size_t n;
    int64_t *largest; /* a chunk of replica r has at most that many samples */
};

/* Builds every distinct (chunk, training, part) graph. Errors: graph_build's. */
int shapes_build(const struct strategy_config *config, struct shapes *ret_shapes, struct err *err);
void shapes_done(struct shapes *shapes);
/* The index of the graph, which is one of the list's. */
size_t shapes_find(const struct shapes *shapes, int64_t chunk, bool training, enum step_part part);

#endif
