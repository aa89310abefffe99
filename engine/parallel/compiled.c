/* compiled.c: see compiled.h. */
#include "engine/parallel/compiled.h"

#include <stdlib.h>

int compiled_new(size_t n, struct compiled_list *ret_list, struct err *err)
{
    struct compiled *items = calloc(n + 1, sizeof *items);
    if (items == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    *ret_list = (struct compiled_list){items, n};
    return 0;
}

void compiled_free(struct compiled_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        executor_free(list->items[i].executor);
        plan_free(list->items[i].plan);
    }
    free(list->items);
    *list = (struct compiled_list){0};
}

static void enlarge(size_t *size, size_t to)
{
    if (to > *size)
        *size = to;
}

int compiled_plan(struct compiled_list *list, size_t i, const struct backend *backend,
                  const struct graph *graph, const struct variable_map *map, enum plan_cut cut,
                  struct strategy_memory *sizes, struct err *err)
{
    int rc = plan_build(backend, graph, map, cut, &list->items[i].plan, err);
    if (rc != 0)
        return rc;
    const struct plan *plan = list->items[i].plan;
    enlarge(&sizes->arena_bytes, plan->arena_bytes);
    enlarge(&sizes->slot_bytes, plan->slot_bytes);
    enlarge(&sizes->outbox_bytes, plan->outbox_bytes);
    return 0;
}

int compiled_create(struct compiled_list *list, struct device *device, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        struct compiled *item = &list->items[i];
        if (item->plan != NULL)
            rc = executor_new(device, item->plan, &item->executor, err);
    }
    return rc;
}
