/* split.h: a model's layers cut into stages, and what crosses the cuts. PURE.
 *
 * A stage owns the variables of its layers: in each of the model's runs (parameters and buffers,
 * gradients, optimizer state) they stand one behind the other. What a layer of one stage reads of a
 * layer of another crosses from the one to the other, whatever lies between.
 */
#ifndef ENGINE_GRAPH_SPLIT_H
#define ENGINE_GRAPH_SPLIT_H

#include "engine/graph/model.h"

struct split {
    int n_stages;
    int first_layer[LIMIT_DEVICES + 1]; /* of stage s; behind the last: the number of layers */
};

/* The output of a layer that another stage reads. */
struct crossing {
    int layer;
    int from, to;       /* the stages: one makes it, the other reads it */
    struct shape shape; /* of one sample */
    enum dtype dtype;
    size_t bytes;  /* of one sample */
    bool gradient; /* in training as many bytes come back: something before it is trained */
};

struct crossings {
    struct crossing *list; /* by layer, then by reader; each pair once */
    size_t n;
};
/* The list is in `arena`. Errors: ERR_NOMEM. */
int split_crossings(const struct model *model, const struct split *split, struct arena *arena,
                    struct crossings *ret_crossings, struct err *err);

/* The whole model as one stage. */
struct split split_none(const struct model *model);
/* The stage of a layer. */
int split_stage(const struct split *split, int layer);
/* Whether a variable belongs to the stage. */
bool split_owns(const struct model *model, const struct split *split, int stage, int variable);
/* The stage's gradients: variables from *ret_first up to, without, *ret_end; equal: it has none. */
void split_gradients(const struct model *model, const struct split *split, int stage,
                     int *ret_first, int *ret_end);

#endif
