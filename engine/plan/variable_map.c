/* variable_map.c: a stage's variables one behind the other, in their order, each on a cache line.
 */
#include <stdint.h>

#include "engine/plan/liveness.h"
#include "engine/plan/plan.h"

/* Puts the variable behind those that are there. */
static void place(struct variable_map *map, size_t i, size_t bytes)
{
    map->offset[i] = map->bytes;
    map->bytes += (bytes + LIVENESS_ALIGN - 1) / LIVENESS_ALIGN * LIVENESS_ALIGN;
}

int variable_map_build(const struct model *model, const struct split *split, int stage,
                       struct arena *arena, struct variable_map *ret_map, struct err *err)
{
    struct variable_map map = {.offset =
                                   arena_array(arena, model->n_variables, sizeof *map.offset)};
    if (map.offset == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the map of variables");
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        map.offset[i] = SIZE_MAX;
        if (split != NULL && !split_owns(model, split, stage, (int)i))
            continue;
        place(&map, i, (size_t)shape_count(&variable->shape) * dtype_size(variable->dtype));
    }
    *ret_map = map;
    return 0;
}

void variable_map_cut(const struct model *model, int parts, struct variable_map *map)
{
    bool behind = false; /* the optimizer's state stands last */
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        if (variable->kind != VARIABLE_OPTIMIZER || map->offset[i] == SIZE_MAX)
            continue;
        if (!behind)
            map->bytes = map->offset[i];
        behind = true;
        place(map, i,
              (size_t)variable_part(variable, parts, 0).share * dtype_size(variable->dtype));
    }
}
