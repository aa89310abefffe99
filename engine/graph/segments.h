/* segments.h: where to cut a chain of layers for activation checkpointing. PURE. */
#ifndef ENGINE_GRAPH_SEGMENTS_H
#define ENGINE_GRAPH_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"

/* A layer of the chain, as its activations weigh. */
struct segment_layer {
    int64_t inner_bytes; /* made by this layer, kept for backward unless its segment recomputes */
    int64_t cross_bytes; /* kept where a segment ends behind this layer: what later layers read */
    bool end;            /* the result: a segment ends behind this layer */
};

/* Chooses the ends such that what is kept at the cuts plus the largest segment, which is alive as a
 * whole while it is recomputed, is smallest (Chen et al. 2016, with weights instead of a count).
 * The last segment runs to the end of the chain and is never recomputed: no end stands behind the
 * last layer. Errors: ERR_NOMEM. */
int segments_choose(struct segment_layer *layers, size_t n, struct err *err);

#endif
