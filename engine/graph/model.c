/* model.c: the layers built once, as a training step, to find what variables they have. */
#include "engine/graph/model.h"

#include <string.h>

#include "engine/graph/build.h"

/* More than one, so that a BatchNorm of one value a channel is not the model's fault. */
enum { FINDING_BATCH = 2 };

int model_find(const struct model *model, const char *name)
{
    for (size_t i = 0; i < model->n_variables; i++)
        if (strcmp(model->variables[i].name, name) == 0)
            return (int)i;
    return -1;
}

int model_variable_layer(const struct model *model, int variable)
{
    const struct variable *v = &model->variables[variable];
    return v->of < 0 ? v->layer : model->variables[v->of].layer;
}

struct variable_part variable_part(const struct variable *variable, int parts, int part)
{
    int64_t line = 64 / (int64_t)dtype_size(variable->dtype);
    int64_t all = shape_count(&variable->shape), share = (all + parts - 1) / parts;
    share = parts > 1 ? (share + line - 1) / line * line : all;
    int64_t first = part * share < all ? part * share : all;
    return (struct variable_part){share, first, all - first < share ? all - first : share};
}

int model_bucket_end(const struct model *model, int first, int end, size_t bucket_bytes)
{
    int last = first;
    for (size_t bytes = 0;; last++) {
        const struct variable *variable = &model->variables[last];
        bytes += (size_t)shape_count(&variable->shape) * dtype_size(variable->dtype);
        if (bytes >= bucket_bytes || last + 1 == end)
            return last;
    }
}

static struct model_input document_input(const struct job_input *input)
{
    static const enum dtype dtypes[] = {[JOB_FLOAT32] = DTYPE_F32, [JOB_INT64] = DTYPE_I64};
    struct model_input found = {.name = input->name,
                                .shape = {.rank = (int)input->shape.rank},
                                .dtype = dtypes[input->dtype],
                                .shared = !input->scatter,
                                .lengths = -1,
                                .of = -1,
                                .trims = -1,
                                .whole = -1};
    memcpy(found.shape.dim, input->shape.dim,
           (size_t)input->shape.rank * sizeof input->shape.dim[0]);
    return found;
}

static int find_inputs(struct model *model, struct err *err)
{
    const struct job_model *document = &model->job->model;
    int n = (int)document->n_inputs, next = n;
    model->inputs = arena_array(model->arena, 2 * (size_t)n, sizeof *model->inputs);
    if (model->inputs == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the model");
    for (int i = 0; i < n; i++) {
        model->inputs[i] = document_input(&document->inputs[i]);
        if (!document->inputs[i].lengths)
            continue;
        model->inputs[i].lengths = next;
        model->inputs[next] = (struct model_input){
            .name = arena_format(model->arena, "%s.lengths", document->inputs[i].name),
            .dtype = DTYPE_I64,
            .lengths = -1,
            .of = i,
            .trims = -1,
            .whole = -1};
        if (model->inputs[next++].name == NULL)
            return err_set(err, ERR_NOMEM, "no memory for the model");
    }
    model->n_inputs = next;
    return 0;
}

/* The layer called `name` before layer `end`, or the input of the model, as model_layer.inputs. */
static bool find_input(const struct model *model, int end, const char *name, int *ret_input)
{
    const struct job_model *document = &model->job->model;
    for (int i = 0; i < end; i++)
        if (strcmp(document->layers[i].name, name) == 0) {
            *ret_input = i;
            return true;
        }
    for (size_t i = 0; i < document->n_inputs; i++)
        if (strcmp(document->inputs[i].name, name) == 0) {
            *ret_input = -1 - (int)i;
            return true;
        }
    return false;
}

/* What each layer reads. */
static int find_layers(struct build *build, struct model *model, struct err *err)
{
    const struct job_model *document = &model->job->model;
    model->layers = arena_array(model->arena, document->n_layers, sizeof *model->layers);
    if (model->layers == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the model");
    for (int i = 0; i < (int)document->n_layers; i++) {
        const struct job_layer *layer = &document->layers[i];
        struct model_layer *found = &model->layers[i];
        build_at(build, i, layer->name);
        found->n_inputs = layer->n_inputs == 0 ? 1 : (int)layer->n_inputs;
        found->inputs[0] = i - 1; /* the layer before, or input 0 */
        for (size_t k = 0; k < layer->n_inputs; k++)
            if (!find_input(model, i, layer->inputs[k], &found->inputs[k]))
                return build_shape_error(build, layer, err, "there is no layer \"%s\" before it",
                                         layer->inputs[k]);
    }
    return 0;
}

/* What each layer makes, once they are built. */
static void describe_layers(const struct build *build, struct model *model)
{
    for (size_t i = model->job->model.n_layers; i-- > 0;) {
        struct model_layer *layer = &model->layers[i];
        const struct value *output = build->graph->layers[i];
        layer->output = output->shape;
        layer->output.rank--;
        memmove(layer->output.dim, layer->output.dim + 1,
                (size_t)layer->output.rank * sizeof layer->output.dim[0]);
        layer->lengths = output->lengths != NULL ? output->lengths->input : -1;
        layer->needs_grad = output->needs_grad;
        layer->used |= output == build->graph->output;
        for (int k = 0; layer->used && k < layer->n_inputs; k++)
            if (layer->inputs[k] >= 0)
                model->layers[layer->inputs[k]].used = true;
    }
}

static int find_target(struct build *build, struct model *model, struct err *err)
{
    model->output = model->layers[model->job->model.n_layers - 1].output;
    model->loss = build->ops->losses[model->job->loss.type];
    return model->loss->target(model, err);
}

/* The optimizer's state of one parameter, in consecutive variables. */
static int find_state(struct build *build, int parameter, const char *const *names, struct err *err)
{
    for (int i = 0; i < OPTIMIZER_MAX_STATE; i++) {
        if (names[i] == NULL)
            continue;
        struct model *model = build->found;
        const struct variable *of = &model->variables[parameter];
        struct variable state = {.name = arena_format(model->arena, "%s.%s", of->name, names[i]),
                                 .shape = of->shape,
                                 .dtype = of->dtype,
                                 .kind = VARIABLE_OPTIMIZER,
                                 .layer = -1,
                                 .of = parameter,
                                 .gradient = -1,
                                 .state = -1};
        if (state.name == NULL)
            return err_set(err, ERR_NOMEM, "no memory for the model");
        int index = build_found(build, &state, err);
        if (index < 0)
            return index;
        if (model->variables[parameter].state < 0)
            model->variables[parameter].state = index;
    }
    return 0;
}

static int find_states(struct build *build, struct err *err)
{
    const struct job_optimizer *optimizer = &build->job->optimizer;
    const char *names[OPTIMIZER_MAX_STATE] = {NULL};
    build->ops->optimizers[optimizer->type]->state(optimizer, names);
    size_t n = build->found->n_variables;
    for (size_t i = 0; i < n; i++) {
        if (build->found->variables[i].gradient < 0)
            continue;
        int rc = find_state(build, (int)i, names, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int count_parameters(struct model *model, struct err *err)
{
    bool trained = false;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        if (variable->kind != VARIABLE_PARAMETER)
            continue;
        model->n_parameters += shape_count(&variable->shape);
        trained |= !model->job->model.layers[variable->layer].frozen;
    }
    if (model->n_parameters == 0)
        return err_at(err, ERR_MODEL_SHAPE, "/model/layers",
                      "the model has no parameters that could be trained");
    if (!trained)
        return err_at(err, ERR_MODEL_SHAPE, "/model/freeze",
                      "all layers that have parameters are frozen: none is left to train");
    return 0;
}

/* A model whose loss no parameter moves would run to its end and learn nothing. */
static int check_trained(const struct build *build, struct err *err)
{
    const struct job_model *layers = &build->job->model;
    if (build->found->n_gradients > 0)
        return 0;
    return err_at(err, ERR_MODEL_SHAPE, "/model/layers",
                  "no parameter is trained: the last layer \"%s\" depends on none",
                  layers->layers[layers->n_layers - 1].name);
}

static int find(struct build *build, struct model *model, struct err *err)
{
    int rc = find_inputs(model, err);
    if (rc == 0)
        rc = find_layers(build, model, err);
    if (rc == 0)
        rc = forward_build(build, err);
    if (rc == 0)
        rc = count_parameters(model, err);
    if (rc != 0)
        return rc;
    describe_layers(build, model);
    rc = find_target(build, model, err);
    if (rc == 0)
        rc = forward_build_loss(build, err);
    if (rc == 0)
        rc = record_find(build, err);
    model->first_gradient = (int)model->n_variables;
    if (rc == 0 && build->graph->output->grad != NULL)
        rc = autograd_build(build, err);
    model->n_gradients = (int)model->n_variables - model->first_gradient;
    if (rc == 0)
        rc = check_trained(build, err);
    if (rc == 0)
        rc = record_check(model, err);
    if (rc == 0)
        rc = find_states(build, err);
    return rc;
}

/* In what type the layers' outputs are, in all graphs. */
static int find_types(struct build *build, struct model *model, struct err *err)
{
    int rc = model->job->train.precision == PRECISION_BF16 ? precision_lower(build, err) : 0;
    for (size_t i = 0; i < model->job->model.n_layers; i++)
        model->layers[i].dtype = build->graph->layers[i]->dtype;
    return rc;
}

int model_build(const struct job *job, const struct op_registry *ops, struct model **ret_model,
                struct err *err)
{
    struct arena *arena = arena_new();
    struct model *model = arena == NULL ? NULL : arena_alloc(arena, sizeof *model);
    if (model == NULL) {
        arena_free(arena);
        return err_set(err, ERR_NOMEM, "no memory for the model");
    }
    *model = (struct model){.job = job, .arena = arena};
    const struct graph_options options = {
        .batch = FINDING_BATCH, .training = true, .n_replicas = 1};
    struct graph *graph = NULL;
    int rc = graph_new(model, &options, &graph, err);
    if (rc == 0) {
        struct build build = {.ops = ops,
                              .job = job,
                              .graph = graph,
                              .found = model,
                              .end_layer = (int)job->model.n_layers,
                              .bucket_first = -1,
                              .layer = -1};
        rc = find(&build, model, err);
        if (rc == 0)
            rc = find_types(&build, model, err);
    }
    graph_free(graph);
    if (rc != 0)
        model_free(model);
    else
        *ret_model = model;
    return rc;
}

void model_free(struct model *model)
{
    if (model != NULL)
        arena_free(model->arena);
}
