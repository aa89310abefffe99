/* recompute.c: activation checkpointing (torch.utils.checkpoint), as a change of the graph.
 *
 * Forward runs as ever; of a segment's values only those that later segments read stay alive. Ahead
 * of a segment's gradients its nodes stand once more (PHASE_RECOMPUTE) and the gradients read those
 * copies. The copies run the same kernels on the same inputs, dropout masks are functions, and what
 * a node would update in place (running statistics) is left out: the bits of a step do not change.
 */
#include <string.h>

#include "engine/graph/build.h"
#include "engine/graph/segments.h"

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory for the model's graph");
}

/* The value whose memory a view shows. */
static const struct value *root_of(const struct value *value)
{
    while (value->producer != NULL && value->producer->op->view)
        value = value->producer->in[0];
    return value;
}

static size_t layer_of(const struct build *build, const struct node *node)
{
    return node->layer < 0 ? build->job->model.n_layers : (size_t)node->layer;
}

/* What each layer makes, and what is alive behind it. */
static void weigh(const struct build *build, size_t *last_layer, struct segment_layer *layers)
{
    const struct graph *graph = build->graph;
    size_t n = build->job->model.n_layers;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->n_in; k++)
            if (graph->nodes[i]->in[k] != NULL)
                last_layer[root_of(graph->nodes[i]->in[k])->id] = layer_of(build, graph->nodes[i]);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = graph->nodes[i];
        size_t made = layer_of(build, node);
        for (int k = 0; made < n && !node->op->view && k < node->n_out; k++) {
            const struct value *value = node->out[k];
            int64_t bytes = shape_count(&value->shape) * (int64_t)dtype_size(value->dtype);
            layers[made].inner_bytes += bytes;
            for (size_t l = made; l < last_layer[value->id] && l < n; l++)
                layers[l].cross_bytes += bytes;
        }
    }
}

static int choose(struct build *build, struct segment_layer *layers, struct err *err)
{
    struct graph *graph = build->graph;
    size_t *last_layer = arena_array(graph->arena, graph->n_values, sizeof *last_layer);
    if (last_layer == NULL)
        return nomem(err);
    weigh(build, last_layer, layers);
    return segments_choose(layers, build->job->model.n_layers, err);
}

static void take_names(const struct build *build, struct segment_layer *layers)
{
    const struct job_segments *asked = &build->job->train.checkpoint_activations;
    const struct job_model *model = &build->job->model;
    for (size_t i = 0; i < model->n_layers; i++)
        for (size_t k = 0; k < asked->n; k++)
            layers[i].end |= strcmp(model->layers[i].name, asked->names[k]) == 0;
}

/* Turns the layers that end a segment into nodes. */
static void cut(const struct build *build, const struct segment_layer *layers,
                struct segments *segments)
{
    const struct graph *graph = build->graph;
    size_t layer = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        bool ends = false;
        for (; layer < layer_of(build, graph->nodes[i]); layer++)
            ends |= layers[layer].end;
        if (ends && i > 0)
            segments->end[segments->n++] = i;
    }
    segments->end[segments->n++] = graph->n_nodes;
}

static void find_readers(const struct graph *graph, struct segments *segments)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = graph->nodes[i];
        segments->replica[i] = graph->nodes[i];
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] != NULL)
                segments->last_reader[node->in[k]->id] = i;
    }
}

int recompute_cut(struct build *build, struct segments *ret_segments, struct err *err)
{
    const struct job_segments *asked = &build->job->train.checkpoint_activations;
    struct graph *graph = build->graph;
    size_t n_layers = build->job->model.n_layers;
    struct segment_layer *layers = arena_array(graph->arena, n_layers, sizeof *layers);
    struct segments segments = {
        .end = arena_array(graph->arena, n_layers + 1, sizeof *segments.end),
        .last_reader = arena_array(graph->arena, graph->n_values, sizeof *segments.last_reader),
        .twin = arena_array(graph->arena, graph->n_values, sizeof(struct value *)),
        .replica = arena_array(graph->arena, graph->n_nodes, sizeof(struct node *)),
    };
    if (layers == NULL || segments.end == NULL || segments.last_reader == NULL ||
        segments.twin == NULL || segments.replica == NULL)
        return nomem(err);
    int rc = asked->automatic ? choose(build, layers, err) : 0;
    if (rc != 0)
        return rc;
    take_names(build, layers);
    cut(build, layers, &segments);
    find_readers(graph, &segments);
    *ret_segments = segments;
    return 0;
}

/* Later segments, the loss or the host read it, or its op says so. */
static bool is_kept(const struct segments *segments, size_t i, const struct value *value)
{
    return value->output || value->producer->op->kept ||
           segments->last_reader[value->id] >= segments->end[i];
}

static bool all_kept(const struct segments *segments, size_t i, const struct node *node)
{
    for (int k = 0; k < node->n_out; k++)
        if (!is_kept(segments, i, node->out[k]))
            return false;
    return true;
}

/* What backward reads in the value's stead. */
static struct value *twin_of(const struct segments *segments, struct value *value)
{
    return value != NULL && segments->twin[value->id] != NULL ? segments->twin[value->id] : value;
}

/* A node that is not made again, as backward sees it: what it read may have been, and all gradients
 * of one value must meet. */
static int keep_node(struct build *build, struct segments *segments, size_t index, struct err *err)
{
    struct node *kept = arena_alloc(build->graph->arena, sizeof *kept);
    if (kept == NULL)
        return nomem(err);
    *kept = *build->graph->nodes[index];
    for (int k = 0; k < kept->n_in; k++)
        kept->in[k] = twin_of(segments, kept->in[k]);
    segments->replica[index] = kept;
    return 0;
}

static int recompute_node(struct build *build, struct segments *segments, size_t i, size_t index,
                          struct err *err)
{
    const struct node *node = build->graph->nodes[index];
    struct node *again = build_node(build, node->op->name, PHASE_RECOMPUTE, NULL, 0, err);
    if (again == NULL)
        return err->code;
    again->attr = node->attr;
    again->name = node->name;
    again->layer = node->layer;
    for (int k = 0; k < node->n_in; k++)
        build_in(again, (node->op->mutates >> k & 1) != 0 ? NULL : twin_of(segments, node->in[k]));
    for (int k = 0; k < node->n_out; k++) {
        const struct value *out = node->out[k];
        struct value *made = build_out(build, again, out->shape, out->dtype, err);
        if (made == NULL)
            return err->code;
        if (!is_kept(segments, i, out))
            segments->twin[out->id] = made;
    }
    segments->replica[index] = again;
    return 0;
}

int recompute_segment(struct build *build, struct segments *segments, size_t i, struct err *err)
{
    int rc = 0;
    for (size_t k = i == 0 ? 0 : segments->end[i - 1]; rc == 0 && k < segments->end[i]; k++)
        rc = all_kept(segments, i, build->graph->nodes[k])
                 ? keep_node(build, segments, k, err)
                 : recompute_node(build, segments, i, k, err);
    return rc;
}

static bool is_original(const struct graph *graph, const struct node *node)
{
    (void)graph;
    return node->phase != PHASE_RECOMPUTE;
}

int recompute_prune(struct build *build, struct err *err)
{
    return prune(build->graph, is_original, err);
}
