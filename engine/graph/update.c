/* update.c: one update node a parameter, in the order of the state_dict; before them the norm of
 * all gradients, where they are clipped. */
#include "engine/graph/build.h"

static int update_state(struct build *build, const struct optimizer_def *optimizer, int parameter,
                        struct update *update, struct err *err)
{
    const char *names[OPTIMIZER_MAX_STATE] = {NULL};
    int next = build->graph->model->variables[parameter].state;
    optimizer->state(&build->job->optimizer, names);
    for (int i = 0; i < OPTIMIZER_MAX_STATE; i++) {
        if (names[i] == NULL)
            continue;
        update->state[i] = build_variable(build, next++, err);
        if (update->state[i] == NULL)
            return err->code;
    }
    return 0;
}

static int update_one(struct build *build, const struct optimizer_def *optimizer, int parameter,
                      struct value *scale, struct err *err)
{
    const struct variable *variable = &build->graph->model->variables[parameter];
    struct update update = {.scale = scale};
    update.parameter = build_variable(build, parameter, err);
    if (update.parameter == NULL)
        return err->code;
    update.gradient = build_variable(build, variable->gradient, err);
    if (update.gradient == NULL)
        return err->code;
    int rc = update_state(build, optimizer, parameter, &update, err);
    build_at(build, -1, variable->name);
    return rc != 0 ? rc : optimizer->build(build, &update, err);
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
