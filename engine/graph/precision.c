/* precision.c: train.precision "bf16", as torch.autocast, as a change of the finished graph.
 *
 * Walks the nodes in order. Each op's row says in which type it runs (op.h); what it reads in the
 * other type is cast ahead of it, what it makes gets its type. A value is cast at most once, so a
 * parameter is rounded once a step and backward reads what forward read. Only a recomputed segment
 * casts again: a copy kept from forward would undo what recomputing saves. Parameters themselves,
 * their gradients and the optimizer's state stay F32, and so does what the host reads. What crosses
 * between stages has the type that the whole model gives it.
 */
#include <string.h>

#include "engine/graph/build.h"

struct lowering {
    struct build *build;
    bool *low;           /* by value: it has become BF16 */
    struct value **twin; /* by value: itself in the other type; NULL: not cast yet */
    size_t n_values;
    bool recomputing;
};

static bool is_real(const struct value *value)
{
    return value != NULL && (value->dtype == DTYPE_F32 || value->dtype == DTYPE_BF16);
}

static bool never(const struct node *node, const bool *low)
{
    (void)node;
    (void)low;
    return false;
}

static bool always(const struct node *node, const bool *low)
{
    (void)node;
    (void)low;
    return true;
}

static bool as_first(const struct node *node, const bool *low)
{
    return low[node->in[0]->id];
}

static bool if_all(const struct node *node, const bool *low)
{
    for (int i = 0; i < node->n_in; i++)
        if ((node->op->low.in >> i & 1) != 0 && node->in[i] != NULL && !low[node->in[i]->id])
            return false;
    return true;
}

static bool (*const runs_low[])(const struct node *node, const bool *low) = {
    [LOW_NEVER] = never,
    [LOW_ALWAYS] = always,
    [LOW_AS_FIRST] = as_first,
    [LOW_IF_ALL] = if_all,
};

/* Whether the node runs low; what it makes of that type then is marked. */
static bool mark_node(const struct node *node, bool *low)
{
    bool runs = runs_low[node->op->low.rule](node, low);
    for (int i = 0; i < node->n_out; i++)
        if (runs && is_real(node->out[i]) && node->out[i]->kind == VALUE_ACTIVATION &&
            (node->op->low.out >> i & 1) != 0)
            low[node->out[i]->id] = true;
    return runs;
}

/* What crosses between stages has the type that it has in the whole model, back and forth. */
static void mark_carried(const struct model *model, const struct carried *carried, int n, bool *low)
{
    for (int i = 0; i < n; i++) {
        bool is_low = model->layers[carried[i].layer].dtype == DTYPE_BF16;
        low[carried[i].value->id] = is_low;
        if (carried[i].grad != NULL)
            low[carried[i].grad->id] = is_low;
    }
}

/* By value; NULL without memory. */
static bool *mark_all_carried(const struct graph *graph, struct err *err)
{
    bool *low = arena_array(graph->arena, graph->n_values, sizeof *low);
    if (low == NULL) {
        err_set(err, ERR_NOMEM, "no memory for the model's graph");
        return NULL;
    }
    mark_carried(graph->model, graph->received, graph->n_received, low);
    mark_carried(graph->model, graph->sent, graph->n_sent, low);
    return low;
}

const bool *precision_find_low(const struct build *build, struct err *err)
{
    bool *low = mark_all_carried(build->graph, err);
    bool lowers = build->job->train.precision == PRECISION_BF16;
    for (size_t i = 0; low != NULL && lowers && i < build->graph->n_nodes; i++)
        mark_node(build->graph->nodes[i], low);
    return low;
}

/* The value in that type, cast for `reader` where it has not been yet. NULL without memory. */
static struct value *in_type(struct lowering *lowering, struct value *value, enum dtype dtype,
                             const struct node *reader, struct err *err)
{
    struct value **twin = &lowering->twin[value->id];
    if (value->dtype == dtype)
        return value;
    if (*twin != NULL)
        return *twin;
    build_at(lowering->build, reader->layer, reader->name);
    struct node *cast = build_node(lowering->build, "cast", reader->phase, NULL, 0, err);
    if (cast == NULL)
        return NULL;
    build_in(cast, value);
    *twin = build_out(lowering->build, cast, value->shape, dtype, err);
    return *twin;
}

static void forget_casts(struct lowering *lowering)
{
    for (size_t i = 0; i < lowering->n_values; i++)
        if (lowering->build->graph->values[i]->kind != VALUE_VARIABLE)
            lowering->twin[i] = NULL;
}

static int lower_node(struct lowering *lowering, struct node *node, struct err *err)
{
    bool recomputing = node->phase == PHASE_RECOMPUTE, low = mark_node(node, lowering->low);
    if (recomputing && !lowering->recomputing)
        forget_casts(lowering);
    lowering->recomputing = recomputing;
    node->low = low;
    for (int i = 0; i < node->n_in; i++) {
        if (!is_real(node->in[i]))
            continue;
        enum dtype dtype = node->op->send                            ? node->out[0]->dtype
                           : low && (node->op->low.in >> i & 1) != 0 ? DTYPE_BF16
                                                                     : DTYPE_F32;
        node->in[i] = in_type(lowering, node->in[i], dtype, node, err);
        if (node->in[i] == NULL)
            return err->code;
    }
    for (int i = 0; i < node->n_out; i++)
        if (node->out[i] != NULL && lowering->low[node->out[i]->id])
            node->out[i]->dtype = DTYPE_BF16;
    return build_append(lowering->build, node, err);
}

/* The host reads floats. */
static int widen_output(struct lowering *lowering, struct err *err)
{
    struct graph *graph = lowering->build->graph;
    struct value *output = graph->output;
    if (output == NULL || !output->output)
        return 0;
    graph->output = in_type(lowering, output, DTYPE_F32, output->producer, err);
    if (graph->output == NULL)
        return err->code;
    output->output = false;
    graph->output->output = true;
    return 0;
}

int precision_lower(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    struct node **nodes = graph->nodes;
    size_t n_nodes = graph->n_nodes;
    struct lowering lowering = {
        .build = build,
        .low = mark_all_carried(graph, err),
        .twin = arena_array(graph->arena, graph->n_values, sizeof(struct value *)),
        .n_values = graph->n_values,
    };
    if (lowering.low == NULL || lowering.twin == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the model's graph");
    for (size_t i = 0; i < graph->n_values; i++)
        if (lowering.low[i])
            graph->values[i]->dtype = DTYPE_BF16;
    graph->nodes = NULL;
    graph->n_nodes = graph->nodes_capacity = 0;
    for (size_t i = 0; i < n_nodes; i++) {
        int rc = lower_node(&lowering, nodes[i], err);
        if (rc != 0)
            return rc;
    }
    return widen_output(&lowering, err);
}
