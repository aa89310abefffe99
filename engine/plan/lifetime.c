/* lifetime.c: see lifetime.h. */
#include "engine/plan/lifetime.h"

#include "engine/graph/op.h"

/* By value: whose memory it is: its own, or that of what it is a view of. */
static void find_roots(const struct graph *graph, const struct order *order, int *root)
{
    for (size_t i = 0; i < graph->n_values; i++)
        root[i] = (int)i;
    for (size_t i = 0; i < order->n; i++) {
        const struct node *node = order->nodes[i];
        if (node->op->view)
            root[node->out[0]->id] = root[node->in[0]->id];
    }
}

int *lifetime_build(const struct graph *graph, const struct order *order, struct arena *arena)
{
    int *root = arena_array(arena, graph->n_values, sizeof *root);
    int *last = arena_array(arena, graph->n_values, sizeof *last);
    if (root == NULL || last == NULL)
        return NULL;
    find_roots(graph, order, root);
    for (size_t i = 0; i < graph->n_values; i++)
        last[i] = -1;
    for (size_t i = 0; i < order->n; i++)
        for (int k = 0; k < order->nodes[i]->n_in; k++)
            if (order->nodes[i]->in[k] != NULL)
                last[root[order->nodes[i]->in[k]->id]] = (int)i;
    for (size_t i = 0; i < graph->n_values; i++)
        if (graph->values[i]->output)
            last[root[i]] = (int)order->n;
    for (size_t i = 0; i < graph->n_values; i++)
        last[i] = last[root[i]];
    return last;
}
