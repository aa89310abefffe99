/* sections.c: see sections.h. A weight gradient that an input gradient is made from runs with the
 * latter. */
#include "engine/plan/sections.h"

static const enum section sections[][PHASE_UPDATE + 1] = {
    [CUT_NONE] = {SECTION_FORWARD},
    [CUT_BACKWARD] = {[PHASE_FORWARD] = SECTION_FORWARD,
                      [PHASE_RECOMPUTE] = SECTION_BACKWARD,
                      [PHASE_INPUT_GRAD] = SECTION_BACKWARD,
                      [PHASE_WEIGHT_GRAD] = SECTION_BACKWARD,
                      [PHASE_REDUCE] = SECTION_BACKWARD,
                      [PHASE_UPDATE] = SECTION_BACKWARD},
    [CUT_WEIGHTS] = {[PHASE_FORWARD] = SECTION_FORWARD,
                     [PHASE_RECOMPUTE] = SECTION_BACKWARD,
                     [PHASE_INPUT_GRAD] = SECTION_BACKWARD,
                     [PHASE_WEIGHT_GRAD] = SECTION_WEIGHTS,
                     [PHASE_REDUCE] = SECTION_WEIGHTS,
                     [PHASE_UPDATE] = SECTION_WEIGHTS},
};

static enum section section_of(const struct node *node, enum plan_cut cut,
                               const enum section *needed)
{
    enum section section = sections[cut][node->phase];
    for (int i = 0; i < node->n_out; i++)
        if (node->out[i] != NULL && needed[node->out[i]->id] < section)
            section = needed[node->out[i]->id];
    return section;
}

/* By node. `needed`: by value: the first section that reads it. */
static void choose(const struct graph *graph, enum plan_cut cut, enum section *needed,
                   enum section *chosen)
{
    for (size_t i = 0; i < graph->n_values; i++)
        needed[i] = SECTION_COUNT;
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const struct node *node = graph->nodes[i];
        chosen[i] = section_of(node, cut, needed);
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] != NULL && node->in[k]->kind == VALUE_ACTIVATION &&
                chosen[i] < needed[node->in[k]->id])
                needed[node->in[k]->id] = chosen[i];
    }
}

int sections_order(const struct graph *graph, enum plan_cut cut, struct arena *arena,
                   struct order *ret_order, struct err *err)
{
    size_t n = graph->n_nodes;
    enum section *needed = arena_array(arena, graph->n_values, sizeof *needed);
    enum section *chosen = arena_array(arena, n, sizeof *chosen);
    struct order order = {.nodes = arena_array(arena, n, sizeof *order.nodes),
                          .section = arena_array(arena, n, sizeof *order.section)};
    if (needed == NULL || chosen == NULL || order.nodes == NULL || order.section == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the plan");
    choose(graph, cut, needed, chosen);
    for (int section = 0; section < SECTION_COUNT; section++)
        for (size_t i = 0; i < n; i++)
            if ((int)chosen[i] == section) {
                order.section[order.n] = (enum section)section;
                order.nodes[order.n++] = graph->nodes[i];
            }
    *ret_order = order;
    return 0;
}
