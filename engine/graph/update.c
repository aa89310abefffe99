/* update.c: one update node a parameter, in the order of the state_dict; before them the norm of
 * all gradients, where they are clipped. Where replicas share the optimizer's state, each updates
 * its part of every parameter and gathers the others': ZeRO-1 (Rajbhandari et al. 2020). */
#include "engine/graph/build.h"

/* How the update of a parameter is cut, and which part is this replica's. */
static struct variable_part own_part(const struct build *build, const struct variable *variable)
{
    const struct graph_options *options = &build->graph->options;
    int parts = options->optimizer_parts > 1 ? options->optimizer_parts : 1;
    return variable_part(variable, parts, options->optimizer_part);
}

static bool is_cut(const struct build *build)
{
    return build->graph->options.optimizer_parts > 1;
}

/* A variable from element `first` on, as much of it as `part` has. NULL without memory. */
static struct value *run_of(struct build *build, int variable, int64_t first,
                            const struct variable_part *part, struct err *err)
{
    const struct variable *v = &build->graph->model->variables[variable];
    if (!is_cut(build))
        return build_variable(build, variable, err);
    struct value *run =
        build_value(build, VALUE_VARIABLE, v->name, SHAPE(part->count), v->dtype, err);
    if (run == NULL)
        return NULL;
    run->variable = variable;
    run->first = first;
    return run;
}

static int update_state(struct build *build, const struct optimizer_def *optimizer, int parameter,
                        const struct variable_part *part, struct update *update, struct err *err)
{
    const char *names[OPTIMIZER_MAX_STATE] = {NULL};
    int next = build->graph->model->variables[parameter].state;
    optimizer->state(&build->job->optimizer, names);
    for (int i = 0; i < OPTIMIZER_MAX_STATE; i++) {
        if (names[i] == NULL)
            continue;
        update->state[i] = run_of(build, next++, 0, part, err);
        if (update->state[i] == NULL)
            return err->code;
    }
    return 0;
}

static int update_part(struct build *build, const struct optimizer_def *optimizer, int parameter,
                       const struct variable_part *part, struct value *scale, struct err *err)
{
    const struct variable *variable = &build->graph->model->variables[parameter];
    struct update update = {.scale = scale};
    update.parameter = run_of(build, parameter, part->first, part, err);
    if (update.parameter == NULL)
        return err->code;
    update.gradient = run_of(build, variable->gradient, part->first, part, err);
    if (update.gradient == NULL)
        return err->code;
    int rc = update_state(build, optimizer, parameter, part, &update, err);
    build_at(build, -1, variable->name);
    return rc != 0 ? rc : optimizer->build(build, &update, err);
}

/* The other replicas' parts. */
static int gather_parameter(struct build *build, int parameter, const struct variable_part *part,
                            struct err *err)
{
    struct value *whole = build_variable(build, parameter, err);
    if (whole == NULL)
        return err->code;
    build_at(build, -1, whole->name);
    return build->ops->gather_parts(build, whole, part->share, err);
}

static int update_one(struct build *build, const struct optimizer_def *optimizer, int parameter,
                      struct value *scale, struct err *err)
{
    const struct variable_part part = own_part(build, &build->graph->model->variables[parameter]);
    int rc = part.count > 0 ? update_part(build, optimizer, parameter, &part, scale, err) : 0;
    return rc == 0 && is_cut(build) ? gather_parameter(build, parameter, &part, err) : rc;
}

/* What all gradients are multiplied by; NULL: by nothing. */
static int build_scale(struct build *build, struct value **ret_scale, struct err *err)
{
    bool any = build->first_gradient < build->end_gradient;
    *ret_scale = NULL;
    if (build->job->train.clip_grad_norm <= 0)
        return 0;
    build_at(build, -1, "gradients");
    struct value *first = any ? build_variable(build, build->first_gradient, err) : NULL;
    struct value *last = any ? build_variable(build, build->end_gradient - 1, err) : NULL;
    if (any && (first == NULL || last == NULL))
        return err->code;
    return build->ops->clip(build, first, last, ret_scale, err);
}

static bool is_updated(const struct build *build, int variable)
{
    int gradient = build->graph->model->variables[variable].gradient;
    return build->first_gradient <= gradient && gradient < build->end_gradient;
}

int update_build(struct build *build, struct err *err)
{
    const struct model *model = build->graph->model;
    const struct optimizer_def *optimizer = build->ops->optimizers[build->job->optimizer.type];
    struct value *scale;
    int rc = build_scale(build, &scale, err);
    for (size_t i = 0; rc == 0 && i < model->n_variables; i++)
        if (is_updated(build, (int)i))
            rc = update_one(build, optimizer, (int)i, scale, err);
    return rc;
}
