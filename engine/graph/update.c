/* update.c: one update node a parameter, in the order of the state_dict. */
#include "engine/graph/build.h"

static int update_one(struct build *build, const struct optimizer_def *optimizer, int parameter,
                      struct err *err)
{
    const struct variable *variable = &build->graph->model->variables[parameter];
    const char *names[OPTIMIZER_MAX_STATE];
    struct value *state[OPTIMIZER_MAX_STATE] = {NULL};
    int n_state = optimizer->state(&build->job->optimizer, names);
    for (int i = 0; i < n_state; i++) {
        state[i] = build_variable(build, variable->state + i, err);
        if (state[i] == NULL)
            return err->code;
    }
    struct value *value = build_variable(build, parameter, err);
    struct value *gradient = value == NULL ? NULL : build_variable(build, variable->gradient, err);
    if (gradient == NULL)
        return err->code;
    build_at(build, -1, variable->name);
    return optimizer->build(build, value, gradient, state, err);
}

int update_build(struct build *build, struct err *err)
{
    const struct model *model = build->graph->model;
    const struct optimizer_def *optimizer = build->ops->optimizers[build->job->optimizer.type];
    for (size_t i = 0; i < model->n_variables; i++) {
        if (model->variables[i].gradient < 0)
            continue;
        int rc = update_one(build, optimizer, (int)i, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}
