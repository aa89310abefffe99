/* plan_stages.h: what `traind-worker plan` shows of a job in stages: who runs which layers, the
 * timetable of a batch, and how long it should take. */
#ifndef ENGINE_WORKER_PLAN_STAGES_H
#define ENGINE_WORKER_PLAN_STAGES_H

#include <jansson.h>

#include "engine/parallel/placement.h"
#include "engine/parallel/timetable.h"
#include "engine/worker/setup.h"

struct stages_plan {
    const struct setup *setup;
    struct placement placement;
    struct timetable *table; /* of the first pipeline's part of a whole batch, as estimated */
    char *grid;
};

/* Of a job of mode `stages`; freed with stages_plan_done, also after an error. Errors: those of
 * placement_build and estimate_timetable. */
int stages_plan_make(const struct setup *setup, const struct model *model,
                     struct stages_plan *ret_plan, struct err *err);
void stages_plan_done(struct stages_plan *plan); /* zeroed ones too */

/* A new reference to an object of it all (doc/processes.md); NULL without memory. */
json_t *stages_plan_json(const struct stages_plan *plan);
void stages_plan_print(const struct stages_plan *plan);

/* The devices that have the layer, as an array of names; NULL without memory. */
json_t *stages_plan_devices(const struct stages_plan *plan, int layer);

#endif
