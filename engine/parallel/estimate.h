/* estimate.h: how long a model's layers and stages should take: before anything has run from the
 * FLOPs and bytes of each node of the graph, at a device's usual rates, or by times that the caller
 * has measured. PURE.
 *
 * By rates it is a model: it decides where to cut and how small to cut, which only needs the
 * proportions, and it is always the same for the same job.
 */
#ifndef ENGINE_PARALLEL_ESTIMATE_H
#define ENGINE_PARALLEL_ESTIMATE_H

#include "engine/graph/graph.h"
#include "engine/parallel/balance.h"
#include "engine/parallel/microbatch.h"
#include "engine/parallel/timetable.h"

struct estimate_rates {
    double flops;   /* a second */
    double bytes;   /* a second, read or written */
    double seconds; /* of each node, however small */
};
/* One core of a present CPU. */
extern const struct estimate_rates estimate_core;

/* What a node reads and writes, each value once; what it changes in place twice. */
double estimate_bytes(const struct node *node);
/* The longer one of its computing and its moving. */
double estimate_node(const struct node *node, const struct estimate_rates *rates);

/* Where the times of a model's layers come from. */
struct estimate_source {
    /* Sets the times of `layers`, one a layer, as a training step of so many rows takes them. NULL:
     * they are those of estimate_core. */
    int (*measure)(void *context, const struct model *model, int64_t rows,
                   struct balance_layer *layers, struct err *err);
    void *context;
};

/* What `rows` samples take in each layer of the model; ret_layers has room for all. A stage may
 * begin at any layer. Errors: graph_build's, the source's, ERR_NOMEM. */
int estimate_layers(const struct model *model, const struct estimate_source *source, int64_t rows,
                    bool training, struct balance_layer *ret_layers, struct err *err);

/* Adds a node's seconds to its layer's; those of reductions and updates belong to none. */
void estimate_add(const struct node *node, double seconds, size_t n_layers,
                  struct balance_layer *layers);

struct estimate_stages {
    int n;
    const size_t *first; /* of each stage: its first layer */
    const int *devices;  /* of each stage: that share its rows; NULL: one each */
};

/* The timetable of one pipeline's `rows` of a batch, at least 1, cut by `rule`. The caller frees
 * it. Errors: as estimate_layers. */
int estimate_timetable(const struct model *model, const struct estimate_source *source,
                       const struct estimate_stages *stages, const struct microbatch_rule *rule,
                       int64_t rows, bool training, struct timetable **ret_table, struct err *err);

#endif
