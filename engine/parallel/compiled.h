/* compiled.h: what one device runs: a plan, then its kernels, for each graph that it will meet. */
#ifndef ENGINE_PARALLEL_COMPILED_H
#define ENGINE_PARALLEL_COMPILED_H

#include "engine/exec/executor.h"
#include "engine/parallel/strategy.h"

struct compiled {
    struct plan *plan; /* NULL: the graph is other devices' */
    struct executor *executor;
};

struct compiled_list { /* by the strategy's graphs */
    struct compiled *items;
    size_t n;
};

/* Room for n, all of them NULL. Errors: ERR_NOMEM. */
int compiled_new(size_t n, struct compiled_list *ret_list, struct err *err);
void compiled_free(struct compiled_list *list); /* a zeroed one too */

/* Plans graph i, and enlarges the arena, slot and outbox of `sizes` to what it takes. Errors:
 * plan_build's. */
int compiled_plan(struct compiled_list *list, size_t i, const struct backend *backend,
                  const struct graph *graph, const struct variable_map *map, enum plan_cut cut,
                  struct strategy_memory *sizes, struct err *err);
/* The kernels of all plans. On the device's thread. Errors: executor_new's. */
int compiled_create(struct compiled_list *list, struct device *device, struct err *err);

#endif
