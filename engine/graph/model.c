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

int model_bucket_end(const struct model *model, int first, size_t bucket_bytes)
{
    int last = first, end = model->first_gradient + model->n_gradients;
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
                                .lengths = -1,
                                .of = -1};
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
            .of = i};
        if (model->inputs[next++].name == NULL)
            return err_set(err, ERR_NOMEM, "no memory for the model");
    }
    model->n_inputs = next;
    return 0;
}

static int find_target(struct build *build, struct model *model, struct err *err)
{
    const struct shape *output = &build->graph->output->shape;
    model->output.rank = output->rank - 1;
    memcpy(model->output.dim, output->dim + 1, (size_t)model->output.rank * sizeof output->dim[0]);
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
    struct value *grad = NULL;
    int rc = find_inputs(model, err);
    if (rc == 0)
        rc = forward_build(build, err);
    if (rc == 0)
        rc = count_parameters(model, err);
    if (rc == 0)
        rc = find_target(build, model, err);
    if (rc == 0)
        rc = forward_build_loss(build, &grad, err);
    if (rc == 0)
        rc = record_find(build, err);
    model->first_gradient = (int)model->n_variables;
    if (rc == 0 && grad != NULL)
        rc = autograd_build(build, grad, err);
    model->n_gradients = (int)model->n_variables - model->first_gradient;
    if (rc == 0)
        rc = check_trained(build, err);
    if (rc == 0)
        rc = record_check(model, err);
    if (rc == 0)
        rc = find_states(build, err);
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
                              .bucket_first = -1,
                              .layer = -1};
        rc = find(&build, model, err);
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
