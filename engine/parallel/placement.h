/* placement.h: which device runs which layers in mode `stages`: PURE.
 *
 * A device is one worker: of a pipeline, of a stage there, of several that share the stage. Workers
 * are counted pipeline by pipeline, stage by stage, in the order of the job's devices.
 */
#ifndef ENGINE_PARALLEL_PLACEMENT_H
#define ENGINE_PARALLEL_PLACEMENT_H

#include "engine/graph/split.h"

struct placement {
    struct split split;
    int n_pipelines;
    int first_worker[LIMIT_DEVICES + 1]; /* of a stage, within a pipeline; behind the last: how many
                                            a pipeline has */
};

struct worker { /* of one device */
    int pipeline, stage;
    int part; /* of the stage's workers */
};

/* Of a document that names its stages. Errors: ERR_JOB_INVALID (devices that do not fit the
 * stages). */
int placement_build(const struct job *job, int n_devices, struct placement *ret_placement,
                    struct err *err);

/* How many devices share a stage of a pipeline. */
int placement_workers(const struct placement *placement, int stage);
struct worker placement_worker(const struct placement *placement, int device);
int placement_device(const struct placement *placement, struct worker worker);

#endif
