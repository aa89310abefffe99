/* adam.c: torch.optim.Adam and AdamW. */
#include "engine/ops/attr.h"
#include "engine/ops/registry.h"
#include "engine/ops/update.h"

static void adam_state(const struct job_optimizer *optimizer, const char **ret_names)
{
    ret_names[0] = "exp_avg";
    ret_names[1] = "exp_avg_sq";
    ret_names[2] = optimizer->amsgrad ? "max_exp_avg_sq" : NULL;
}

static int adam_build(struct build *build, const struct update *update, struct err *err)
{
    const struct job_optimizer *args = &build_job(build)->optimizer;
    const struct adam_attr attr = {
        .beta1 = args->betas.v[0],
        .beta2 = args->betas.v[1],
        .eps = args->eps,
        .weight_decay = update_weight_decay(build, update->parameter),
        .decoupled = args->type == OPTIMIZER_ADAMW,
    };
    return update_node(build, "adam", &attr, sizeof attr, update, err);
}

const struct op_def op_adam = {.name = "adam", .mutates = UPDATE_MUTATES};
const struct optimizer_def optimizer_adam = {adam_state, adam_build};
