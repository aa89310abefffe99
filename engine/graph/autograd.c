/* autograd.c: gradient nodes, in the reverse order of forward.
 *
 * Each node's `grad` turns the gradients of its outputs into those of its inputs. A value that
 * several nodes read gets the sum of their contributions, added as they come, so that each
 * contribution's memory is free again at once. A bucket's all-reduce stands right behind the node
 * that makes its last gradient: it is appended before the next gradient node is.
 */
#include "engine/graph/build.h"

static struct node *range_node(struct build *build, const char *op, enum phase phase, int first,
                               int last, struct err *err)
{
    struct value *from = build_variable(build, first, err);
    struct value *to = from == NULL ? NULL : build_variable(build, last, err);
    if (to == NULL)
        return NULL;
    build_at(build, -1, "gradients");
    struct node *node = build_node(build, op, phase, NULL, 0, err);
    if (node == NULL)
        return NULL;
    build_in(node, from);
    build_in(node, to);
    return node;
}

int autograd_build_all(struct build *build, const char *op, enum phase phase, struct err *err)
{
    int first = build->first_gradient, last = build->end_gradient - 1;
    if (first > last)
        return 0;
    return range_node(build, op, phase, first, last, err) == NULL ? err->code : 0;
}

/* All-reduces each bucket whose last gradient has been made. */
static int reduce_buckets(struct build *build, struct err *err)
{
    const struct model *model = build->graph->model;
    while (build->bucket_first >= 0) {
        int last = model_bucket_end(model, build->bucket_first, build->end_gradient,
                                    build->graph->options.bucket_bytes);
        if (build->variables[last] == NULL)
            return 0;
        bool more = last + 1 < build->end_gradient;
        const char *op = more ? "all_reduce_start" : "all_reduce";
        if (range_node(build, op, PHASE_REDUCE, build->bucket_first, last, err) == NULL)
            return err->code;
        build->bucket_first = more ? last + 1 : -1;
    }
    return 0;
}

struct value *autograd_gradient(struct build *build, struct value *variable, struct err *err)
{
    build->written[build->n_written++] = variable;
    if (!step_part_adds(build->graph->options.part))
        return variable;
    struct value *addition =
        build_value(build, VALUE_ACTIVATION, NULL, variable->shape, variable->dtype, err);
    if (addition == NULL)
        return NULL;
    build->made[build->n_made][0] = variable;
    build->made[build->n_made][1] = addition;
    build->n_made++;
    return addition;
}

/* Adds what the last node made to the gradients of the window's earlier batches. */
static int add_gradients(struct build *build, struct err *err)
{
    for (int i = 0; i < build->n_made; i++) {
        build_at(build, -1, "gradients");
        struct node *add = build_node(build, "add", PHASE_WEIGHT_GRAD, NULL, 0, err);
        if (add == NULL)
            return err->code;
        build_in(add, build->made[i][0]);
        build_in(add, build->made[i][1]);
        build_out_value(add, build->made[i][0]);
    }
    build->n_made = 0;
    return 0;
}

static int settle_gradients(struct build *build, struct err *err)
{
    int rc = add_gradients(build, err);
    if (rc == 0)
        rc = record_gradients(build, err);
    return rc != 0 ? rc : reduce_buckets(build, err);
}

struct node *build_grad_node(struct build *build, const char *op, enum phase phase,
                             const struct node *forward, struct err *err)
{
    if (settle_gradients(build, err) != 0)
        return NULL;
    struct node *node = build_node(build, op, phase, NULL, 0, err);
    if (node == NULL)
        return NULL;
    node->attr = forward->attr;
    node->name = forward->name;
    node->layer = forward->layer;
    return node;
}

int autograd_accumulate(struct build *build, const struct node *node, struct value *value,
                        struct value *contribution, struct err *err)
{
    if (value->grad == NULL) {
        value->grad = contribution;
        return 0;
    }
    struct node *add = build_grad_node(build, "add", PHASE_INPUT_GRAD, node, err);
    if (add == NULL)
        return err->code;
    build_in(add, value->grad);
    build_in(add, contribution);
    struct value *sum = build_out(build, add, value->shape, value->dtype, err);
    if (sum == NULL)
        return err->code;
    value->grad = sum;
    return 0;
}

static bool outputs_grad(const struct node *node, struct value **ret_grad)
{
    bool any = false;
    for (int i = 0; i < node->n_out; i++) {
        ret_grad[i] = node->out[i] == NULL ? NULL : node->out[i]->grad;
        any |= ret_grad[i] != NULL;
    }
    return any;
}

static bool inputs_need_grad(const struct node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] != NULL && node->in[i]->needs_grad)
            return true;
    return false;
}

/* A recomputed node's outputs that were kept get their gradients at the kept ones. */
static const struct node *take_grads(const struct node *node, const struct node *replica)
{
    for (int i = 0; replica != node && i < node->n_out; i++)
        if (node->out[i]->grad != NULL)
            replica->out[i]->grad = node->out[i]->grad;
    return replica;
}

static int node_grad(struct build *build, const struct node *node, struct err *err)
{
    struct value *out_grad[NODE_MAX_OUT] = {NULL}, *in_grad[NODE_MAX_IN] = {NULL};
    if (node->op->grad == NULL || !inputs_need_grad(node) || !outputs_grad(node, out_grad))
        return 0;
    int rc = node->op->grad(build, node, out_grad, in_grad, err);
    for (int i = 0; rc == 0 && i < node->n_in; i++)
        if (in_grad[i] != NULL)
            rc = autograd_accumulate(build, node, node->in[i], in_grad[i], err);
    return rc;
}

static int forward_node_grad(struct build *build, const struct node *node,
                             const struct node *replica, struct err *err)
{
    const struct node *taken = take_grads(node, replica);
    int rc = record_output_grads(build, node, taken, err);
    return rc != 0 ? rc : node_grad(build, taken, err);
}

static int segment_grad(struct build *build, struct segments *segments, size_t i, struct err *err)
{
    size_t first = i == 0 ? 0 : segments->end[i - 1];
    int rc = i + 1 < segments->n ? recompute_segment(build, segments, i, err) : 0;
    for (size_t k = segments->end[i]; rc == 0 && k-- > first;)
        rc = forward_node_grad(build, build->graph->nodes[k], segments->replica[k], err);
    return rc;
}

int autograd_build(struct build *build, struct err *err)
{
    struct segments segments;
    int rc = recompute_cut(build, &segments, err);
    if (rc == 0)
        rc = stage_build_seeds(build, err);
    for (size_t i = rc == 0 ? segments.n : 0; rc == 0 && i-- > 0;)
        rc = segment_grad(build, &segments, i, err);
    if (rc == 0)
        rc = settle_gradients(build, err);
    if (rc == 0)
        rc = stage_build_sent_grads(build, err);
    return rc == 0 && segments.n > 1 ? recompute_prune(build, err) : rc;
}

int autograd_build_reduce(struct build *build, struct err *err)
{
    for (int i = build->first_gradient; i < build->end_gradient; i++)
        if (build_variable(build, i, err) == NULL)
            return err->code;
    return reduce_buckets(build, err);
}
