/* sections.h: which node runs in which section, and in what order: PURE. Private to engine/plan. */
#ifndef ENGINE_PLAN_SECTIONS_H
#define ENGINE_PLAN_SECTIONS_H

#include "engine/plan/plan.h"

struct order {
    const struct node **nodes; /* as many as the graph's, section after section */
    enum section *section;     /* of each; rising */
    size_t n;
};

/* Within a section the nodes keep the graph's order. In the arena. Errors: ERR_NOMEM. */
int sections_order(const struct graph *graph, enum plan_cut cut, struct arena *arena,
                   struct order *ret_order, struct err *err);

#endif
