/* record.c: what train.record names, and the nodes that make its statistics, where the job asks:
 * another job has none. They stand in the graphs that end an optimizer step. Where a batch takes
 * several graphs they stand in each of them, and those of parameters and of their gradients, which
 * are whole behind the last one, in a graph of their own. */
#include <stdio.h>
#include <string.h>

#include "engine/graph/build.h"
#include "proto/json.h"

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory for what is recorded");
}

/* Every name that may be recorded, and what it means. */
struct candidates {
    struct recorded *list;
    size_t n;
};

static int add(struct arena *arena, struct candidates *candidates, const char *name,
               enum recorded_kind kind, int index, struct err *err)
{
    static const char *const suffixes[] = {
        [RECORDED_OUTPUT] = ".output",
        [RECORDED_OUTPUT_GRAD] = ".output.grad",
        [RECORDED_PARAMETER] = "",
        [RECORDED_PARAMETER_GRAD] = ".grad",
    };
    struct recorded *candidate = &candidates->list[candidates->n];
    *candidate = (struct recorded){
        .name = arena_format(arena, "%s%s", name, suffixes[kind]), .kind = kind, .index = index};
    candidates->n += candidate->name != NULL;
    return candidate->name != NULL ? 0 : nomem(err);
}

/* Called when the model's variables are parameters and buffers. */
static int list_candidates(const struct model *model, struct arena *arena,
                           struct candidates *ret_candidates, struct err *err)
{
    const struct job_model *layers = &model->job->model;
    size_t most = 2 * (layers->n_layers + model->n_variables);
    struct candidates candidates = {arena_array(arena, most, sizeof *candidates.list), 0};
    int rc = candidates.list == NULL ? nomem(err) : 0;
    for (size_t i = 0; rc == 0 && i < layers->n_layers; i++)
        for (int kind = RECORDED_OUTPUT; rc == 0 && kind <= RECORDED_OUTPUT_GRAD; kind++)
            rc = add(arena, &candidates, layers->layers[i].name, (enum recorded_kind)kind, (int)i,
                     err);
    for (size_t i = 0; rc == 0 && i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        if (variable->kind != VARIABLE_PARAMETER)
            continue;
        rc = add(arena, &candidates, variable->name, RECORDED_PARAMETER, (int)i, err);
        if (rc == 0)
            rc = add(arena, &candidates, variable->name, RECORDED_PARAMETER_GRAD, (int)i, err);
    }
    *ret_candidates = candidates;
    return rc;
}

static int refuse(size_t entry, struct err *err, const char *name, const char *what)
{
    char path[64];
    snprintf(path, sizeof path, "/train/record/%zu", entry);
    return err_at(err, ERR_JOB_INVALID, path, "\"%.128s\" cannot be recorded: %s", name, what);
}

static int refuse_unknown(const struct candidates *candidates, struct arena *arena, size_t entry,
                          const char *name, struct err *err)
{
    char what[256];
    const char **known = arena_array(arena, candidates->n, sizeof *known);
    if (known == NULL)
        return nomem(err);
    for (size_t i = 0; i < candidates->n; i++)
        known[i] = candidates->list[i].name;
    const char *nearest = json_nearest(name, known, candidates->n);
    if (nearest != NULL)
        snprintf(what, sizeof what, "nothing has this name; did you mean \"%.128s\"?", nearest);
    else
        snprintf(what, sizeof what,
                 "nothing has this name; allowed are \"LAYER.output\", parameters such as "
                 "\"LAYER.weight\", and the gradient of either, with \".grad\" behind it");
    return refuse(entry, err, name, what);
}

static int find_one(const struct candidates *candidates, struct arena *arena, size_t entry,
                    const char *name, struct recorded *ret_recorded, struct err *err)
{
    for (size_t i = 0; i < candidates->n; i++)
        if (strcmp(candidates->list[i].name, name) == 0) {
            *ret_recorded = candidates->list[i];
            return 0;
        }
    return refuse_unknown(candidates, arena, entry, name, err);
}

int record_find(struct build *build, struct err *err)
{
    const struct job_train *train = &build->job->train;
    struct model *model = build->found;
    struct candidates candidates;
    if (train->n_record == 0 || !job_trains(build->job))
        return 0;
    model->recorded = arena_array(model->arena, train->n_record, sizeof *model->recorded);
    if (model->recorded == NULL)
        return nomem(err);
    int rc = list_candidates(model, build->graph->arena, &candidates, err);
    for (size_t i = 0; rc == 0 && i < train->n_record; i++) {
        rc = find_one(&candidates, build->graph->arena, i, train->record[i], &model->recorded[i],
                      err);
        model->recorded[i].name = train->record[i]; /* the graph's arena goes first */
        model->n_recorded++;
    }
    return rc;
}

int record_check(const struct model *model, struct err *err)
{
    for (int i = 0; i < model->n_recorded; i++) {
        const struct recorded *recorded = &model->recorded[i];
        if (recorded->kind == RECORDED_OUTPUT && !model->layers[recorded->index].used &&
            model->job->parallel.mode == PARALLEL_STAGES)
            return refuse((size_t)i, err, recorded->name,
                          "the model's output does not depend on this layer, and stages leave "
                          "such a layer out");
        bool missing = (recorded->kind == RECORDED_OUTPUT_GRAD && !recorded->flows) ||
                       (recorded->kind == RECORDED_PARAMETER_GRAD &&
                        model->variables[recorded->index].gradient < 0);
        if (missing)
            return refuse((size_t)i, err, recorded->name,
                          "no gradient flows there (a frozen layer, or nothing that is trained "
                          "comes before it, or the loss does not depend on it)");
    }
    return 0;
}

/* Whether this graph has the statistics of its samples; of variables. */
static bool records(const struct build *build)
{
    const struct graph_options *options = &build->graph->options;
    return build->found == NULL && build->graph->model->n_recorded > 0 && options->training &&
           (options->pieces || step_part_ends(options->part));
}

static bool records_variables(const struct build *build)
{
    return records(build) && !build->graph->options.pieces;
}

/* Appends the statistics that are recorded[i]'s. */
static int record_one(struct build *build, int i, struct value *x, enum phase phase, bool scaled,
                      struct err *err)
{
    struct graph *graph = build->graph;
    if (graph->recorded == NULL)
        graph->recorded =
            arena_array(graph->arena, (size_t)graph->model->n_recorded, sizeof(struct value *));
    if (graph->recorded == NULL)
        return nomem(err);
    int rc = build->ops->statistics(build, x, phase, scaled, &graph->recorded[i], err);
    if (rc == 0)
        graph->recorded[i]->output = true;
    return rc;
}

int record_layer(struct build *build, struct err *err)
{
    const struct model *model = build->graph->model;
    int rc = 0, layer = build->layer;
    for (int i = 0; records(build) && rc == 0 && i < model->n_recorded; i++) {
        const struct recorded *recorded = &model->recorded[i];
        struct value *x = NULL;
        if (recorded->kind == RECORDED_OUTPUT && recorded->index == layer)
            x = build->graph->layers[layer];
        if (recorded->kind == RECORDED_PARAMETER && records_variables(build) &&
            model->variables[recorded->index].layer == layer)
            x = build_variable(build, recorded->index, err);
        if (x != NULL)
            rc = record_one(build, i, x, PHASE_FORWARD, false, err);
    }
    return rc;
}

/* The gradient of the layer's output, where that is one of the node's. */
static struct value *output_grad(const struct build *build, int layer, const struct node *node,
                                 const struct node *replica)
{
    for (int i = 0; i < node->n_out; i++)
        if (node->out[i] != NULL && node->out[i] == build->graph->layers[layer])
            return replica->out[i]->grad;
    return NULL;
}

int record_output_grads(struct build *build, const struct node *node, const struct node *replica,
                        struct err *err)
{
    const struct model *model = build->graph->model;
    bool scaled = step_scales(&build->job->train);
    int rc = 0;
    for (int i = 0; rc == 0 && i < model->n_recorded; i++) {
        const struct recorded *recorded = &model->recorded[i];
        if (recorded->kind != RECORDED_OUTPUT_GRAD)
            continue;
        struct value *grad = output_grad(build, recorded->index, node, replica);
        if (grad == NULL)
            continue;
        build_at(build, recorded->index, build->job->model.layers[recorded->index].name);
        if (build->found != NULL)
            build->found->recorded[i].flows = true;
        else if (records(build))
            rc = record_one(build, i, grad, PHASE_INPUT_GRAD, scaled, err);
    }
    return rc;
}

/* Whether recorded[i] is about the variable that this is the gradient of. */
static bool is_gradient_of(const struct model *model, int i, const struct value *gradient)
{
    const struct recorded *recorded = &model->recorded[i];
    return recorded->kind == RECORDED_PARAMETER_GRAD &&
           model->variables[recorded->index].gradient == gradient->variable;
}

int record_gradients(struct build *build, struct err *err)
{
    const struct model *model = build->graph->model;
    bool scaled = step_scales(&build->job->train);
    int rc = 0;
    for (int k = 0; records_variables(build) && k < build->n_written; k++)
        for (int i = 0; rc == 0 && i < model->n_recorded; i++)
            if (is_gradient_of(model, i, build->written[k])) {
                struct value *gradient = build_variable(build, build->written[k]->variable, err);
                build_at(build, -1, "gradients");
                rc = record_one(build, i, gradient, PHASE_WEIGHT_GRAD, scaled, err);
            }
    build->n_written = 0;
    return rc;
}

/* What of recorded[i] is a variable of this stage; -1: nothing. */
static int own_variable(const struct build *build, int i)
{
    const struct model *model = build->graph->model;
    const struct recorded *recorded = &model->recorded[i];
    if (recorded->kind != RECORDED_PARAMETER && recorded->kind != RECORDED_PARAMETER_GRAD)
        return -1;
    const struct variable *parameter = &model->variables[recorded->index];
    if (parameter->layer < build->first_layer || parameter->layer >= build->end_layer)
        return -1;
    return recorded->kind == RECORDED_PARAMETER ? recorded->index : parameter->gradient;
}

int record_variables(struct build *build, struct err *err)
{
    const struct model *model = build->graph->model;
    int rc = 0;
    build_at(build, -1, "variables");
    for (int i = 0; rc == 0 && i < model->n_recorded; i++) {
        int variable = own_variable(build, i);
        if (variable < 0)
            continue;
        bool gradient = model->variables[variable].kind == VARIABLE_GRADIENT;
        struct value *x = build_variable(build, variable, err);
        if (x == NULL)
            return err->code;
        rc = record_one(build, i, x, gradient ? PHASE_WEIGHT_GRAD : PHASE_FORWARD,
                        gradient && step_scales(&build->job->train), err);
    }
    return rc;
}
