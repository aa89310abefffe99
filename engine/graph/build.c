/* build.c: values, nodes and variables: what ops are made with (op.h). */
#include "engine/graph/build.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* So large a tensor is a mistake, and sums of sizes below it cannot overflow. */
static const int64_t most_elements = INT64_C(1) << 40;

static void *nomem(struct err *err)
{
    err_set(err, ERR_NOMEM, "no memory for the model's graph");
    return NULL;
}

const struct job *build_job(const struct build *build)
{
    return build->job;
}

bool build_training(const struct build *build)
{
    return build->graph->options.training;
}

bool build_keeps_buffers(const struct build *build)
{
    return build->graph->options.keeps_buffers;
}

int build_replicas(const struct build *build)
{
    return build->graph->options.n_replicas;
}

int build_layer(const struct build *build)
{
    return build->layer;
}

struct shape build_batch_shape(const struct build *build, const struct shape *sample)
{
    struct shape shape = {.rank = sample->rank + 1, .dim = {build->graph->options.batch}};
    memcpy(shape.dim + 1, sample->dim, (size_t)sample->rank * sizeof sample->dim[0]);
    return shape;
}

void build_at(struct build *build, int layer, const char *name)
{
    build->layer = layer;
    build->name = name;
}

const char *build_shape_text(const struct shape *shape, char buf[static SHAPE_TEXT])
{
    char full[SHAPE_TEXT];
    shape_format(shape, full);
    if (shape->rank == 0)
        return strcpy(buf, full);
    snprintf(buf, SHAPE_TEXT, "[N%s", full + strcspn(full, ",]"));
    return buf;
}

int build_shape_error(const struct build *build, const struct job_layer *layer, struct err *err,
                      const char *format, ...)
{
    char path[64], message[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    snprintf(path, sizeof path, "/model/layers/%d", build->layer);
    err_at(err, ERR_MODEL_SHAPE, path, "%s", message);
    return err_context(err, "layer \"%s\" (%s)", layer->name, layer_type_name(layer->type));
}

static int check_size(const struct build *build, const struct shape *shape, struct err *err)
{
    char text[SHAPE_TEXT], path[64] = "/model";
    int64_t count = shape_count(shape);
    if (count >= 0 && count <= most_elements)
        return 0;
    if (build->layer >= 0)
        snprintf(path, sizeof path, "/model/layers/%d", build->layer);
    return err_at(err, ERR_MODEL_SHAPE, path, "a tensor of shape %s is larger than 2^40 elements",
                  shape_format(shape, text));
}

struct value *build_value(struct build *build, enum value_kind kind, const char *name,
                          struct shape shape, enum dtype dtype, struct err *err)
{
    struct graph *graph = build->graph;
    if (check_size(build, &shape, err) != 0)
        return NULL;
    struct value **values = arena_grow(graph->arena, graph->values, graph->n_values,
                                       &graph->values_capacity, sizeof(struct value *));
    if (values == NULL)
        return nomem(err);
    graph->values = values;
    struct value *value = arena_alloc(graph->arena, sizeof *value);
    if (value == NULL)
        return nomem(err);
    *value = (struct value){.id = (int)graph->n_values,
                            .name = name,
                            .shape = shape,
                            .dtype = dtype,
                            .kind = kind,
                            .variable = -1,
                            .input = -1};
    graph->values[graph->n_values++] = value;
    return value;
}

int build_found(struct build *build, const struct variable *variable, struct err *err)
{
    struct model *model = build->found;
    size_t n = model->n_variables;
    struct variable *variables =
        arena_grow(model->arena, model->variables, n, &build->variable_capacity, sizeof *variables);
    struct value **values = arena_grow(build->graph->arena, build->variables, n,
                                       &build->variables_capacity, sizeof(struct value *));
    if (variables == NULL || values == NULL) {
        nomem(err);
        return ERR_NOMEM;
    }
    variables[n] = *variable;
    values[n] = NULL;
    model->variables = variables;
    model->n_variables++;
    build->variables = values;
    return (int)n;
}

struct value *build_variable(struct build *build, int variable, struct err *err)
{
    if (build->variables[variable] != NULL)
        return build->variables[variable];
    const struct variable *v = &build->graph->model->variables[variable];
    struct value *value = build_value(build, VALUE_VARIABLE, v->name, v->shape, v->dtype, err);
    if (value == NULL)
        return NULL;
    value->variable = variable;
    value->needs_grad = v->kind == VARIABLE_PARAMETER && build_training(build) &&
                        !build->job->model.layers[v->layer].frozen;
    build->variables[variable] = value;
    return value;
}

/* The next variable in the order of the state_dict: found now, or known from when it was. */
static struct value *layer_variable(struct build *build, const struct job_layer *layer,
                                    const char *suffix, const struct variable *like,
                                    struct err *err)
{
    int index = (int)build->next_variable;
    if (build->found != NULL) {
        struct variable variable = *like;
        if (check_size(build, &like->shape, err) != 0)
            return NULL;
        if (like->kind == VARIABLE_PARAMETER &&
            init_rule_choose(build, layer, suffix, &like->shape, &variable.init, err) != 0)
            return NULL;
        variable.name = arena_format(build->found->arena, "%s.%s", layer->name, suffix);
        if (variable.name == NULL)
            return nomem(err);
        index = build_found(build, &variable, err);
        if (index < 0)
            return NULL;
    }
    assert((size_t)index < build->graph->model->n_variables);
    assert(build->graph->model->variables[index].kind == like->kind);
    build->next_variable++;
    return build_variable(build, index, err);
}

struct value *build_parameter(struct build *build, const struct job_layer *layer,
                              const char *suffix, struct shape shape, struct init_rule init,
                              struct err *err)
{
    const struct variable like = {.shape = shape,
                                  .dtype = DTYPE_F32,
                                  .kind = VARIABLE_PARAMETER,
                                  .layer = build->layer,
                                  .of = -1,
                                  .gradient = -1,
                                  .state = -1,
                                  .init = init};
    return layer_variable(build, layer, suffix, &like, err);
}

void build_zero_row(struct build *build, const struct value *parameter, int64_t row)
{
    if (build->found == NULL)
        return;
    struct variable *variable = &build->found->variables[parameter->variable];
    variable->padded = true;
    variable->padding_row = row;
}

struct value *build_buffer(struct build *build, const struct job_layer *layer, const char *suffix,
                           struct shape shape, enum dtype dtype, struct init_rule init,
                           struct err *err)
{
    const struct variable like = {.shape = shape,
                                  .dtype = dtype,
                                  .kind = VARIABLE_BUFFER,
                                  .layer = build->layer,
                                  .of = -1,
                                  .gradient = -1,
                                  .state = -1,
                                  .init = init};
    return layer_variable(build, layer, suffix, &like, err);
}

struct value *build_gradient(struct build *build, const struct value *parameter, struct err *err)
{
    int of = parameter->variable;
    if (build->found != NULL) {
        struct variable variable = {.shape = parameter->shape,
                                    .dtype = parameter->dtype,
                                    .kind = VARIABLE_GRADIENT,
                                    .layer = -1,
                                    .of = of,
                                    .gradient = -1,
                                    .state = -1};
        variable.name = arena_format(build->found->arena, "%s.grad", parameter->name);
        if (variable.name == NULL)
            return nomem(err);
        int index = build_found(build, &variable, err);
        if (index < 0)
            return NULL;
        build->found->variables[of].gradient = index;
    }
    struct value *gradient =
        build_variable(build, build->graph->model->variables[of].gradient, err);
    return gradient == NULL ? NULL : autograd_gradient(build, gradient, err);
}

int build_append(struct build *build, struct node *node, struct err *err)
{
    struct graph *graph = build->graph;
    struct node **nodes = arena_grow(graph->arena, graph->nodes, graph->n_nodes,
                                     &graph->nodes_capacity, sizeof(struct node *));
    if (nodes == NULL) {
        nomem(err);
        return ERR_NOMEM;
    }
    graph->nodes = nodes;
    node->id = (int)graph->n_nodes;
    graph->nodes[graph->n_nodes++] = node;
    return 0;
}

struct node *build_node(struct build *build, const char *op, enum phase phase, const void *attr,
                        size_t attr_size, struct err *err)
{
    struct graph *graph = build->graph;
    struct node *node = arena_alloc(graph->arena, sizeof *node);
    void *copy = attr == NULL ? NULL : arena_alloc(graph->arena, attr_size);
    if (node == NULL || (attr != NULL && copy == NULL))
        return nomem(err);
    if (attr != NULL)
        memcpy(copy, attr, attr_size);
    *node = (struct node){.op = op_find(build->ops, op),
                          .attr = copy,
                          .name = build->name,
                          .layer = build->layer,
                          .phase = phase};
    assert(node->op != NULL);
    return build_append(build, node, err) == 0 ? node : NULL;
}

void build_in(struct node *node, struct value *value)
{
    assert(node->n_in < NODE_MAX_IN);
    node->in[node->n_in++] = value;
}

static struct value *kept_lengths(const struct node *node, const struct shape *shape)
{
    for (int i = 0; i < node->n_in; i++) {
        const struct value *in = node->in[i];
        if (in != NULL && in->lengths != NULL && shape->rank >= 3 &&
            shape->dim[0] == in->shape.dim[0] && shape->dim[1] == in->shape.dim[1])
            return in->lengths;
    }
    return NULL;
}

struct value *build_out(struct build *build, struct node *node, struct shape shape,
                        enum dtype dtype, struct err *err)
{
    struct value *value = build_value(build, VALUE_ACTIVATION, NULL, shape, dtype, err);
    if (value == NULL)
        return NULL;
    value->producer = node;
    for (int i = 0; i < node->n_in; i++)
        value->needs_grad |= node->in[i] != NULL && node->in[i]->needs_grad;
    if (node->phase == PHASE_FORWARD)
        value->lengths = kept_lengths(node, &shape);
    build_out_value(node, value);
    return value;
}

void build_lookup(struct build *build, const struct value *value, int64_t rows)
{
    if (value->kind != VALUE_DATA || build->found == NULL)
        return;
    struct model_input *input = &build->found->inputs[value->input];
    if (input->values == 0 || rows < input->values)
        input->values = rows;
}

void build_out_value(struct node *node, struct value *value)
{
    assert(node->n_out < NODE_MAX_OUT);
    node->out[node->n_out++] = value;
}
