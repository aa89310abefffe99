/* forward.c: the job's layers as nodes, in their order, then the loss. */
#include "engine/graph/build.h"

static int build_data(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    const struct model *model = graph->model;
    graph->data = arena_array(graph->arena, (size_t)model->n_inputs, sizeof(struct value *));
    if (graph->data == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the model's graph");
    for (int i = 0; i < model->n_inputs; i++) {
        const struct model_input *input = &model->inputs[i];
        struct shape shape = build_batch_shape(build, &input->shape);
        graph->data[i] = build_value(build, VALUE_DATA, input->name, shape, input->dtype, err);
        if (graph->data[i] == NULL)
            return err->code;
        graph->data[i]->input = i;
    }
    for (int i = 0; i < model->n_inputs; i++)
        if (model->inputs[i].lengths >= 0)
            graph->data[i]->lengths = graph->data[model->inputs[i].lengths];
    return 0;
}

static int build_one(struct build *build, struct err *err)
{
    const struct job_layer *layer = &build->job->model.layers[build->layer];
    const struct op_def *op = build->ops->layers[layer->type];
    const struct graph *graph = build->graph;
    struct model_layer *as_model = &graph->model->layers[build->layer];
    struct value *in[NODE_MAX_IN] = {NULL};
    int n_in = as_model->n_inputs, rc = 0;
    for (int i = 0; i < n_in; i++) {
        int input = as_model->inputs[i];
        in[i] = input < 0 ? graph->data[-1 - input] : graph->layers[input];
    }
    if (build->found != NULL)
        as_model->first_variable = (int)build->next_variable;
    else
        build->next_variable = (size_t)as_model->first_variable;
    for (int i = 0; rc == 0 && i < n_in; i++)
        if ((in[i]->dtype == DTYPE_I64) != op->integers)
            rc = build_shape_error(build, layer, err, "it takes %s, but its input %d is %s",
                                   op->integers ? "int64" : "float32", i,
                                   op->integers ? "float32" : "int64");
    if (rc == 0)
        rc = op->build(build, layer, in, n_in, &build->graph->layers[build->layer], err);
    if (rc == 0 && build->found != NULL)
        trim_layer(build, layer, in, n_in, build->graph->layers[build->layer]);
    return rc;
}

/* What the host reads of forward are statistics. */
static bool makes_output(const struct graph *graph, const struct node *node)
{
    if (node->op->send)
        return true;
    for (int i = 0; i < node->n_out; i++)
        if (node->out[i] != NULL && (node->out[i] == graph->output || node->out[i]->output))
            return true;
    return false;
}

/* Stages send nothing for a layer that the model's output does not depend on: there it is not even
 * built. */
static bool is_built(const struct build *build, int layer)
{
    return build->graph->options.split == NULL || build->graph->model->layers[layer].used;
}

int forward_build(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    size_t n_layers = build->job->model.n_layers;
    graph->layers = arena_array(graph->arena, n_layers, sizeof(struct value *));
    if (graph->layers == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the model's graph");
    int rc = build_data(build, err);
    if (rc == 0)
        rc = stage_build_received(build, err);
    for (int i = build->first_layer; rc == 0 && i < build->end_layer; i++) {
        build_at(build, i, build->job->model.layers[i].name);
        if (!is_built(build, i))
            continue;
        rc = build_one(build, err);
        if (rc == 0)
            rc = record_layer(build, err);
    }
    if (rc == 0)
        rc = stage_build_sent(build, err);
    if (rc != 0)
        return rc;
    graph->output = graph->layers[n_layers - 1];
    if (build->found != NULL)
        trim_output(build);
    rc = fuse(build, err);
    return rc != 0 ? rc : prune(graph, makes_output, err);
}

int forward_build_loss(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    const struct model *model = graph->model;
    const struct loss_def *loss = model->loss;
    bool training = build_training(build);
    build_at(build, -1, "loss");
    struct shape target = build_batch_shape(build, &model->target);
    graph->target = build_value(build, VALUE_TARGET, "target", target, model->target_dtype, err);
    if (graph->target == NULL)
        return err->code;
    int rc = loss->build(build, graph->output, graph->target, &graph->loss,
                         training && graph->output->needs_grad ? &graph->output->grad : NULL, err);
    if (rc == 0 && !training && loss->predict != NULL)
        rc = loss->predict(build, graph->output, &graph->prediction, err);
    if (rc != 0)
        return rc;
    graph->loss->output = true;
    graph->output->output = !training;
    if (graph->prediction != NULL)
        graph->prediction->output = true;
    return 0;
}
