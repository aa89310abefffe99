/* lifetime.h: until which node a value's memory is read: PURE. Private to engine/plan. */
#ifndef ENGINE_PLAN_LIFETIME_H
#define ENGINE_PLAN_LIFETIME_H

#include "engine/plan/sections.h"

/* One a value, by id: the last node, by its place in the order, that reads it or a view of the same
 * memory; the number of nodes where the host reads it after the step; -1 where nobody does. In the
 * arena; NULL without memory. */
int *lifetime_build(const struct graph *graph, const struct order *order, struct arena *arena);

#endif
