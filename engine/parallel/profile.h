/* profile.h: how long a model's layers and nodes take, measured on a device alone. */
#ifndef ENGINE_PARALLEL_PROFILE_H
#define ENGINE_PARALLEL_PROFILE_H

#include "engine/backend/backend.h"
#include "engine/parallel/balance.h"
#include "engine/parallel/estimate.h"

struct profile_config {
    const struct backend *backend;
    const struct device_config *device;
    const struct model *model;
    int64_t rows; /* samples of a micro-batch */
};

/* Sets the times of `layers`, one a layer of the model, as estimate.h guesses them: forward, input
 * gradients and weight gradients; of some runs the quickest of each kernel counts. The device is
 * opened and closed again. Errors: the device's, plan_build's, graph_build's, ERR_NOMEM. */
int profile_layers(const struct profile_config *config, struct balance_layer *layers,
                   struct err *err);

struct profile_node { /* a step of the plan */
    const char *op, *impl;
    const char *name; /* the layer's, or the parameter's of an update; "": neither's */
    enum phase phase;
    bool layer; /* `name` is a layer's */
    double seconds;
    double flops, bytes; /* estimate_bytes */
    double floor;        /* seconds at the device's rates; 0 for what the planner added (reorder) */
};

struct profile {
    struct arena *arena;
    struct profile_node *nodes; /* in the order in which they run */
    size_t n_nodes;
    struct estimate_rates rates, low_rates; /* of the device, measured; low: in BF16 */
    double seconds, floor;                  /* of all nodes */
};

/* A training step's nodes, updates included, measured in the same way; *ret_profile is freed with
 * profile_free. Errors: as profile_layers. */
int profile_nodes(const struct profile_config *config, struct profile **ret_profile,
                  struct err *err);
void profile_free(struct profile *profile);

#endif
