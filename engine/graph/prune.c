/* prune.c: removes the nodes that nothing needs, and their values. */
#include "engine/graph/build.h"

static bool any_needed(const struct node *node, const bool *needed)
{
    for (int i = 0; i < node->n_out; i++)
        if (node->out[i] != NULL && needed[node->out[i]->id])
            return true;
    return false;
}

static void need(struct value *const *values, int n, bool *needed)
{
    for (int i = 0; i < n; i++)
        if (values[i] != NULL)
            needed[values[i]->id] = true;
}

static void compact(struct graph *graph, const bool *kept, const bool *needed)
{
    size_t n_nodes = 0, n_values = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (kept[i]) {
            graph->nodes[i]->id = (int)n_nodes;
            graph->nodes[n_nodes++] = graph->nodes[i];
        }
    for (size_t i = 0; i < graph->n_values; i++)
        if (needed[i] || graph->values[i]->kind != VALUE_ACTIVATION) {
            graph->values[i]->id = (int)n_values;
            graph->values[n_values++] = graph->values[i];
        }
    graph->n_nodes = n_nodes;
    graph->n_values = n_values;
}

int prune(struct graph *graph, bool (*is_root)(const struct graph *graph, const struct node *node),
          struct err *err)
{
    bool *needed = arena_array(graph->arena, graph->n_values, sizeof *needed);
    bool *kept = arena_array(graph->arena, graph->n_nodes, sizeof *kept);
    if (needed == NULL || kept == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the model's graph");
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const struct node *node = graph->nodes[i];
        kept[i] = is_root(graph, node) || any_needed(node, needed);
        if (!kept[i])
            continue;
        need(node->in, node->n_in, needed);
        need(node->out, node->n_out, needed);
    }
    compact(graph, kept, needed);
    return 0;
}
