/* forward.c: the job's layers as nodes, in their order, then the loss. */
#include "engine/graph/build.h"

#include <string.h>

static struct shape with_batch(const struct shape *sample, int64_t batch)
{
    struct shape shape = {.rank = sample->rank + 1, .dim = {batch}};
    memcpy(shape.dim + 1, sample->dim, (size_t)sample->rank * sizeof sample->dim[0]);
    return shape;
}

static int build_data(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    const struct model *model = graph->model;
    graph->data = arena_array(graph->arena, (size_t)model->n_inputs, sizeof(struct value *));
    if (graph->data == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the model's graph");
    for (int i = 0; i < model->n_inputs; i++) {
        const struct model_input *input = &model->inputs[i];
        struct shape shape = with_batch(&input->shape, graph->options.batch);
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

/* The input of the model called `name`. */
static struct value *find_data(const struct build *build, const char *name)
{
    const struct model *model = build->graph->model;
    for (int i = 0; i < model->n_inputs; i++)
        if (model->inputs[i].of < 0 && strcmp(model->inputs[i].name, name) == 0)
            return build->graph->data[i];
    return NULL;
}

/* The output of the layer called `name` before layer `end`, or an input of the model. */
static struct value *find_output(const struct build *build, int end, const char *name)
{
    for (int i = 0; i < end; i++)
        if (strcmp(build->job->model.layers[i].name, name) == 0)
            return build->graph->layers[i];
    return find_data(build, name);
}

static int find_inputs(const struct build *build, const struct job_layer *layer,
                       struct value **ret_in, int *ret_n, struct err *err)
{
    int before = build->layer;
    for (size_t i = 0; i < layer->n_inputs; i++) {
        ret_in[i] = find_output(build, before, layer->inputs[i]);
        if (ret_in[i] == NULL)
            return build_shape_error(build, layer, err, "there is no layer \"%s\" before it",
                                     layer->inputs[i]);
    }
    if (layer->n_inputs == 0)
        ret_in[0] = before == 0 ? build->graph->data[0] : build->graph->layers[before - 1];
    *ret_n = layer->n_inputs == 0 ? 1 : (int)layer->n_inputs;
    return 0;
}

static int build_one(struct build *build, struct err *err)
{
    const struct job_layer *layer = &build->job->model.layers[build->layer];
    const struct op_def *op = build->ops->layers[layer->type];
    struct value *in[NODE_MAX_IN] = {NULL};
    int n_in = 0;
    int rc = find_inputs(build, layer, in, &n_in, err);
    for (int i = 0; rc == 0 && i < n_in; i++)
        if ((in[i]->dtype == DTYPE_I64) != op->integers)
            rc = build_shape_error(build, layer, err, "it takes %s, but its input %d is %s",
                                   op->integers ? "int64" : "float32", i,
                                   op->integers ? "float32" : "int64");
    if (rc == 0)
        rc = op->build(build, layer, in, n_in, &build->graph->layers[build->layer], err);
    return rc;
}

/* What the host reads of forward are statistics. */
static bool makes_output(const struct graph *graph, const struct node *node)
{
    for (int i = 0; i < node->n_out; i++)
        if (node->out[i] != NULL && (node->out[i] == graph->output || node->out[i]->output))
            return true;
    return false;
}

int forward_build(struct build *build, struct err *err)
{
    struct graph *graph = build->graph;
    size_t n_layers = build->job->model.n_layers;
    graph->layers = arena_array(graph->arena, n_layers, sizeof(struct value *));
    if (graph->layers == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the model's graph");
    int rc = build_data(build, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < n_layers; i++) {
        build_at(build, (int)i, build->job->model.layers[i].name);
        rc = build_one(build, err);
        if (rc == 0)
            rc = record_layer(build, err);
        if (rc != 0)
            return rc;
    }
    build_at(build, -1, "loss");
    graph->output = graph->layers[n_layers - 1];
    return prune(graph, makes_output, err);
}

int forward_build_loss(struct build *build, struct value **ret_grad, struct err *err)
{
    struct graph *graph = build->graph;
    const struct model *model = graph->model;
    const struct loss_def *loss = model->loss;
    bool training = build_training(build);
    struct shape target = with_batch(&model->target, graph->options.batch);
    graph->target = build_value(build, VALUE_TARGET, "target", target, model->target_dtype, err);
    if (graph->target == NULL)
        return err->code;
    *ret_grad = NULL;
    int rc = loss->build(build, graph->output, graph->target, &graph->loss,
                         training && graph->output->needs_grad ? ret_grad : NULL, err);
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
