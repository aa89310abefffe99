/* plan_profile.h: what `plan --profile` adds: how long each node of a training step takes on the
 * job's first device, measured now, without the other devices. */
#ifndef ENGINE_WORKER_PLAN_PROFILE_H
#define ENGINE_WORKER_PLAN_PROFILE_H

#include <jansson.h>

#include "engine/parallel/profile.h"
#include "engine/worker/setup.h"

/* Of the device's rows: its chunk, or under `stages` those of a micro-batch through all layers.
 * Errors: profile_nodes'; ERR_JOB_INVALID where the job does not train. */
int plan_profile_make(const struct setup *setup, const struct model *model,
                      struct profile **ret_profile, struct err *err);
json_t *plan_profile_json(const struct setup *setup, const struct profile *profile); /* or NULL */
/* The slowest first. */
void plan_profile_print(const struct profile *profile);
/* Writes it as a Chrome trace. Errors: ERR_IO, ERR_NOMEM. */
int plan_profile_trace(const struct setup *setup, const struct profile *profile, const char *path,
                       struct err *err);

#endif
