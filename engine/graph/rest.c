/* rest.c: the step of a replica without samples.
 *
 * It is made from a step with samples: the nodes that replicas run together stay, without the
 * activations that they read, in the order in which the others come to them.
 */
#include <string.h>

#include "engine/graph/build.h"

static void forget_activations(struct node *node)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] != NULL && node->in[k]->kind == VALUE_ACTIVATION)
            node->in[k] = NULL;
}

/* Ahead of all sums. */
static int clear_gradients(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    size_t n = graph->n_nodes;
    int rc = autograd_build_all(build, "zero", PHASE_WEIGHT_GRAD, err);
    if (rc != 0 || graph->n_nodes == n)
        return rc;
    struct node *zero = graph->nodes[n];
    memmove(graph->nodes + 1, graph->nodes, n * sizeof(struct node *));
    graph->nodes[0] = zero;
    for (size_t i = 0; i <= n; i++)
        graph->nodes[i]->id = (int)i;
    return 0;
}

int rest_strip(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!graph->nodes[i]->op->shared)
            continue;
        forget_activations(graph->nodes[i]);
        graph->nodes[i]->id = (int)n;
        graph->nodes[n++] = graph->nodes[i];
    }
    graph->n_nodes = n;
    graph->data = NULL;
    graph->n_received = graph->n_sent = 0;
    graph->layers = graph->recorded = NULL;
    graph->target = graph->output = graph->loss = graph->prediction = NULL;
    return step_part_adds(graph->options.part) ? 0 : clear_gradients(build, err);
}
