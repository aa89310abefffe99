/* stage.c: what crosses between a stage and the others, as values and `send` nodes.
 *
 * Where several stages read a value their gradients are added from the last stage to the first, and
 * before those of the stage's own readers: the order of the whole model's backward.
 */
#include "engine/graph/build.h"

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory for the model's graph");
}

static int list_carried(struct graph *graph, const struct crossings *crossings)
{
    int stage = graph->options.stage;
    graph->received = arena_array(graph->arena, crossings->n, sizeof *graph->received);
    graph->sent = arena_array(graph->arena, crossings->n, sizeof *graph->sent);
    if (graph->received == NULL || graph->sent == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < crossings->n; i++) {
        const struct crossing *crossing = &crossings->list[i];
        if (crossing->to == stage)
            graph->received[graph->n_received++] =
                (struct carried){.layer = crossing->layer, .stage = crossing->from};
        if (crossing->from == stage)
            graph->sent[graph->n_sent++] =
                (struct carried){.layer = crossing->layer, .stage = crossing->to};
    }
    return 0;
}

static struct value *receive(struct build *build, int layer, struct err *err)
{
    const struct model_layer *made = &build->graph->model->layers[layer];
    struct shape shape = build_batch_shape(build, &made->output);
    const char *name = build->job->model.layers[layer].name;
    struct value *value = build_value(build, VALUE_RECEIVED, name, shape, DTYPE_F32, err);
    if (value == NULL)
        return NULL;
    if (made->lengths >= 0)
        value->lengths = build->graph->data[made->lengths];
    value->needs_grad = build_training(build) && made->needs_grad;
    return value;
}

int stage_build_received(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    struct crossings crossings;
    if (graph->options.split == NULL)
        return 0;
    int rc = split_crossings(graph->model, graph->options.split, graph->arena, &crossings, err);
    if (rc == 0 && list_carried(graph, &crossings) != 0)
        rc = nomem(err);
    for (int i = 0; rc == 0 && i < graph->n_received; i++) {
        struct carried *received = &graph->received[i];
        received->value = receive(build, received->layer, err);
        if (received->value == NULL)
            return err->code;
        graph->layers[received->layer] = received->value;
    }
    return rc;
}

static struct value *build_send(struct build *build, enum phase phase, int layer,
                                struct value *value, struct err *err)
{
    build_at(build, -1, build->job->model.layers[layer].name);
    struct node *node = build_node(build, "send", phase, NULL, 0, err);
    if (node == NULL)
        return NULL;
    build_in(node, value);
    struct value *sent = build_out(build, node, value->shape, value->dtype, err);
    if (sent != NULL)
        sent->kind = VALUE_SENT;
    return sent;
}

int stage_build_sent(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    for (int i = 0; i < graph->n_sent; i++) {
        struct carried *sent = &graph->sent[i];
        if (i > 0 && sent->layer == sent[-1].layer)
            sent->value = sent[-1].value;
        else
            sent->value =
                build_send(build, PHASE_FORWARD, sent->layer, graph->layers[sent->layer], err);
        if (sent->value == NULL)
            return err->code;
    }
    return 0;
}

static int add_seed(struct build *build, struct carried *sent, struct err *err)
{
    struct value *value = sent->value;
    sent->grad = build_value(build, VALUE_RECEIVED, NULL, value->shape, value->dtype, err);
    if (sent->grad == NULL)
        return err->code;
    return autograd_accumulate(build, value->producer, value, sent->grad, err);
}

int stage_build_seeds(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    int rc = 0;
    for (int i = graph->n_sent; rc == 0 && i-- > 0;)
        if (graph->sent[i].value->needs_grad)
            rc = add_seed(build, &graph->sent[i], err);
    return rc;
}

int stage_build_sent_grads(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    for (int i = 0; i < graph->n_received; i++) {
        struct carried *received = &graph->received[i];
        if (received->value->grad == NULL)
            continue;
        received->grad =
            build_send(build, PHASE_INPUT_GRAD, received->layer, received->value->grad, err);
        if (received->grad == NULL)
            return err->code;
    }
    return 0;
}
