/* plan.h: a graph compiled for one backend: kernels, layouts, and an offset for every buffer.
 *
 * plan_build walks the nodes in order, asks the backend for a kernel, inserts `reorder` nodes where
 * a kernel wants another layout (a value is reordered to one layout at most once), computes
 * liveness and gives every activation and scratch an offset in one arena. Peak memory is known
 * before anything is allocated. PURE but for the backend's queries. Call with the device's team
 * size set.
 */
#ifndef ENGINE_PLAN_PLAN_H
#define ENGINE_PLAN_PLAN_H

#include "engine/backend/backend.h"

/* Where the variables lie; the same for every plan of a model. Gradients are contiguous, in their
 * order (gaps of alignment are zero), so that a run of them is one flat buffer. */
struct variable_map {
    size_t *offset; /* one a variable */
    size_t bytes;
};
int variable_map_build(const struct model *model, struct arena *arena, struct variable_map *ret_map,
                       struct err *err);

enum plan_space {
    SPACE_NONE,
    SPACE_VARIABLES,
    SPACE_ARENA,
    SPACE_TARGET,
    SPACE_DATA, /* of input 0; that of input i is SPACE_DATA + i */
    SPACE_COUNT = SPACE_DATA + MODEL_MAX_INPUTS
};

struct plan_buffer {
    enum plan_space space;
    size_t offset, bytes;
    const struct layout *layout;
};

struct plan_step {
    const struct node *node;
    const struct kernel *kernel;
    struct kernel_choice choice;
    struct plan_buffer in[NODE_MAX_IN], out[NODE_MAX_OUT];
    size_t scratch_offset; /* in the arena */
};

struct plan {
    const struct backend *backend;
    const struct graph *graph;
    struct arena *arena;
    struct plan_step *steps; /* views have none */
    size_t n_steps;
    size_t arena_bytes; /* activations and scratch at their peak */
    struct plan_buffer loss, output,
        prediction;               /* plain layouts; SPACE_NONE where the graph has none */
    struct plan_buffer *recorded; /* the same by graph->recorded; NULL as that is */
};

/* `graph` and `map` are borrowed and outlive the plan. Errors: ERR_DEVICE_FAILED (no kernel),
 * ERR_NOMEM. */
int plan_build(const struct backend *backend, const struct graph *graph,
               const struct variable_map *map, struct plan **ret_plan, struct err *err);
void plan_free(struct plan *plan);
/* One line a step: op, layer, implementation, layouts, offsets. To be freed with free(). */
char *plan_dump(const struct plan *plan);

#endif
