/* profile.h: how long a model's layers take, measured on a device: forward, input gradients and
 * weight gradients of each, as estimate.h guesses them. */
#ifndef ENGINE_PARALLEL_PROFILE_H
#define ENGINE_PARALLEL_PROFILE_H

#include "engine/backend/backend.h"
#include "engine/parallel/balance.h"

struct profile_config {
    const struct backend *backend;
    const struct device_config *device;
    const struct model *model;
    int64_t rows; /* samples of a micro-batch */
};

/* Sets the times of `layers`, one a layer of the model; of some runs the quickest of each kernel
 * counts. The device is opened and closed again. Errors: the device's, plan_build's, graph_build's,
 * ERR_NOMEM. */
int profile_layers(const struct profile_config *config, struct balance_layer *layers,
                   struct err *err);

#endif
