/* planner.h: a plan under construction. Private to engine/plan.
 *
 * Until all lifetimes are known, every buffer that liveness places is said to be in the arena, and
 * its offset is the number of its piece. Then it is known which pieces live across sections, and
 * liveness gives the real offsets.
 */
#ifndef ENGINE_PLAN_PLANNER_H
#define ENGINE_PLAN_PLANNER_H

#include "engine/plan/liveness.h"
#include "engine/plan/sections.h"

/* A value in one layout; further ones are copies that a reorder made. */
struct copy {
    struct plan_buffer buffer;
    struct copy *next;
};

/* A run of memory from its first step to its last. */
struct piece {
    struct interval interval;
    bool slot; /* it is filled before its section runs, or lives across sections */
};

struct planner {
    struct plan *plan;
    const struct variable_map *map;
    enum plan_cut cut;
    struct arena *scratch; /* what is not kept */
    struct order order;
    size_t at;            /* the node of the order that is being planned */
    int *last_read;       /* by value: lifetime.h */
    struct copy **copies; /* by value, the first as it was made; NULL: not met yet */
    struct piece *pieces;
    size_t n_pieces, pieces_capacity, steps_capacity;
    const struct node **senders; /* by value: the node that sends it; NULL: none */
    size_t *outbox;              /* by value: the offset of what is sent */
};

/* place.c: the space and the offset of each piece, then of every buffer of the plan. Errors:
 * ERR_NOMEM. */
int place_assign(struct planner *planner, struct err *err);

#endif
