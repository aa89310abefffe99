/* rmsprop.c: torch.optim.RMSprop. */
#include "engine/ops/attr.h"
#include "engine/ops/registry.h"
#include "engine/ops/update.h"

static void rmsprop_state(const struct job_optimizer *optimizer, const char **ret_names)
{
    ret_names[0] = "square_avg";
    ret_names[1] = optimizer->momentum != 0 ? "momentum_buffer" : NULL;
    ret_names[2] = optimizer->centered ? "grad_avg" : NULL;
}

static int rmsprop_build(struct build *build, const struct update *update, struct err *err)
{
    const struct job_optimizer *args = &build_job(build)->optimizer;
    const struct rmsprop_attr attr = {
        .alpha = args->alpha,
        .eps = args->eps,
        .momentum = args->momentum,
        .weight_decay = update_weight_decay(build, update->parameter),
    };
    return update_node(build, "rmsprop", &attr, sizeof attr, update, err);
}

const struct op_def op_rmsprop = {.name = "rmsprop", .mutates = UPDATE_MUTATES};
const struct optimizer_def optimizer_rmsprop = {rmsprop_state, rmsprop_build};
