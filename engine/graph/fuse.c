/* fuse.c: several forward nodes as one, ahead of autograd: what lies between them is never written.
 *
 *     norm ─► relu                norm ─► add ─► relu
 *                                 other ──┘
 *
 * The fused node stands where the normalisation stood, so gradients of parameters are made in the
 * same order as without; what is added has to be there by then. Where two normalisations are added
 * it is the later one that is fused. Fused or not, a step comes to the same bits: so nothing is
 * where the sum would be of two types, or the gradients of what is added be added in another order.
 */
#include <string.h>

#include "engine/graph/build.h"
#include "engine/graph/fuse.h"

struct fusing {
    struct build *build;
    int *n_readers;       /* by value */
    struct node **reader; /* by value: the last one */
    const bool *low;      /* by value: it will be BF16 */
};

static bool is_op(const struct node *node, const char *op)
{
    return node != NULL && strcmp(node->op->name, op) == 0;
}

static const struct op_fusion *find_fusion(const struct build *build, const struct node *node)
{
    for (size_t i = 0; i < build->ops->n_fusions; i++) {
        const struct op_fusion *fusion = &build->ops->fusions[i];
        if (is_op(node, fusion->norm) && !(fusion->inference && build_training(build)))
            return fusion;
    }
    return NULL;
}

static bool is_recorded(const struct graph *graph, const struct value *value)
{
    for (int i = 0; i < graph->model->n_recorded; i++) {
        const struct recorded *recorded = &graph->model->recorded[i];
        if ((recorded->kind == RECORDED_OUTPUT || recorded->kind == RECORDED_OUTPUT_GRAD) &&
            graph->layers[recorded->index] == value)
            return true;
    }
    return false;
}

/* The node that alone needs the value; NULL: several do, or somebody else. */
static struct node *only_reader(const struct fusing *fusing, const struct value *value)
{
    const struct graph *graph = fusing->build->graph;
    bool alone =
        fusing->n_readers[value->id] == 1 && value != graph->output && !is_recorded(graph, value);
    return alone ? fusing->reader[value->id] : NULL;
}

/* What a sum of two adds to the value. */
static struct value *other_term(const struct node *add, const struct value *value)
{
    return add->in[add->in[0] == value];
}

static bool reads(const struct node *node, const struct value *value)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] == value)
            return true;
    return false;
}

/* Whether `norm` can add the value where `add` has done so. */
static bool adds_the_same(const struct fusing *fusing, const struct value *value,
                          const struct node *norm, const struct node *add)
{
    const struct graph *graph = fusing->build->graph;
    bool is_there = value->producer == NULL || value->producer->id < norm->id;
    for (int id = norm->id + 1; is_there && id < add->id; id++)
        if (reads(graph->nodes[id], value))
            return false;
    return is_there && fusing->low[value->id] == fusing->low[norm->out[0]->id];
}

static void fuse_node(const struct fusing *fusing, struct node *norm,
                      const struct op_fusion *fusion)
{
    struct value *residual = NULL;
    struct node *last = only_reader(fusing, norm->out[0]);
    if (is_op(last, "add") && last->n_in == 2) {
        residual = other_term(last, norm->out[0]);
        last =
            adds_the_same(fusing, residual, norm, last) ? only_reader(fusing, last->out[0]) : NULL;
    }
    if (!is_op(last, "relu"))
        return;
    norm->op = op_find(fusing->build->ops, fusion->fused);
    while (residual != NULL && norm->n_in < fusion->residual)
        build_in(norm, NULL);
    if (residual != NULL)
        build_in(norm, residual);
    norm->out[0] = last->out[0];
    norm->out[0]->producer = norm;
    last->n_out = 0; /* nothing needs it now */
}

int fuse(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    if (build->found != NULL) /* what is recorded is not known yet */
        return 0;
    struct fusing fusing = {
        .build = build,
        .n_readers = arena_array(graph->arena, graph->n_values, sizeof *fusing.n_readers),
        .reader = arena_array(graph->arena, graph->n_values, sizeof(struct node *)),
        .low = precision_find_low(build, err),
    };
    if (fusing.n_readers == NULL || fusing.reader == NULL || fusing.low == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the model's graph");
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->n_in; k++)
            if (graph->nodes[i]->in[k] != NULL) {
                fusing.n_readers[graph->nodes[i]->in[k]->id]++;
                fusing.reader[graph->nodes[i]->in[k]->id] = graph->nodes[i];
            }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct op_fusion *fusion = find_fusion(build, graph->nodes[i]);
        if (fusion != NULL)
            fuse_node(&fusing, graph->nodes[i], fusion);
    }
    return 0;
}
