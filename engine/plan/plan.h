/* plan.h: a graph compiled for one backend: kernels, layouts, and an offset for every buffer.
 *
 * plan_build walks the nodes in order, asks the backend for a kernel, inserts `reorder` nodes where
 * a kernel wants another layout (a value is reordered to one layout at most once), computes
 * liveness and gives every activation and scratch an offset in one arena. Peak memory is known
 * before anything is allocated. PURE but for the backend's queries. Call with the device's team
 * size set.
 *
 * A stage's plan is cut into sections, which run one by one while other micro-batches are in
 * flight: what a section leaves to a later one lies in the micro-batch's slot instead.
 */
#ifndef ENGINE_PLAN_PLAN_H
#define ENGINE_PLAN_PLAN_H

#include "engine/backend/backend.h"

/* Where the variables lie; the same for every plan of a model. Gradients are contiguous, in their
 * order (gaps of alignment are zero), so that a run of them is one flat buffer. */
struct variable_map {
    size_t *offset; /* one a variable; SIZE_MAX: another stage's */
    size_t bytes;
};
/* `split` NULL: the whole model. */
int variable_map_build(const struct model *model, const struct split *split, int stage,
                       struct arena *arena, struct variable_map *ret_map, struct err *err);

/* Of the optimizer's state, this device has one of `parts` parts only (variable_part). */
void variable_map_cut(const struct model *model, int parts, struct variable_map *map);

enum plan_space {
    SPACE_NONE,
    SPACE_VARIABLES,
    SPACE_ARENA,
    SPACE_SLOT,   /* of the micro-batch, from its first section to its last */
    SPACE_OUTBOX, /* what a section sends, until every reader has it */
    SPACE_TARGET,
    SPACE_DATA, /* of input 0; that of input i is SPACE_DATA + i */
    SPACE_COUNT = SPACE_DATA + MODEL_MAX_INPUTS
};

/* Where a plan is cut. */
enum plan_cut {
    CUT_NONE,     /* nowhere: all is SECTION_FORWARD */
    CUT_BACKWARD, /* forward, then all gradients in autograd's own order */
    CUT_WEIGHTS,  /* forward; recomputation and input gradients; weight gradients */
};
enum section { SECTION_FORWARD, SECTION_BACKWARD, SECTION_WEIGHTS, SECTION_COUNT };

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

/* graph->received[i] or sent[i], in plain layout. */
struct plan_carried {
    struct plan_buffer value; /* received: in the slot before SECTION_FORWARD runs; sent: in the
                                 outbox when it has run */
    struct plan_buffer grad;  /* sent: in the slot before SECTION_BACKWARD runs; received: in the
                                 outbox when it has run; SPACE_NONE: none */
};

struct plan {
    const struct backend *backend;
    const struct graph *graph;
    struct arena *arena;
    struct plan_step *steps; /* views have none */
    size_t n_steps;
    struct plan_steps {
        size_t begin, end;
    } sections[SECTION_COUNT]; /* one behind the other; a section may be empty */
    size_t arena_bytes;        /* activations and scratch at their peak */
    size_t slot_bytes;         /* of one micro-batch in flight */
    size_t outbox_bytes;       /* of one micro-batch */
    struct plan_buffer loss, output,
        prediction; /* plain layouts; SPACE_NONE where the graph has none. To be read before
                       another section runs in the same arena */
    struct plan_buffer *recorded; /* by graph->recorded, NULL as that is; where the plan is cut, in
                                     the slot, from the end of the section that makes it */
    struct plan_buffer data[MODEL_MAX_INPUTS], target; /* where they are read, plain: their own
                       space, or the slot where the plan is cut; SPACE_NONE: nothing reads them */
    struct plan_carried *received, *sent;              /* as the graph's */
};

/* `graph` and `map` are borrowed and outlive the plan. Errors: ERR_DEVICE_FAILED (no kernel),
 * ERR_NOMEM. */
int plan_build(const struct backend *backend, const struct graph *graph,
               const struct variable_map *map, enum plan_cut cut, struct plan **ret_plan,
               struct err *err);
void plan_free(struct plan *plan);
/* One line a step: op, layer, implementation, layouts, offsets. To be freed with free(). */
char *plan_dump(const struct plan *plan);

#endif
