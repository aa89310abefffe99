/* sgd.c: torch.optim.SGD. */
#include "engine/ops/attr.h"
#include "engine/ops/registry.h"
#include "engine/ops/update.h"

static void sgd_state(const struct job_optimizer *optimizer, const char **ret_names)
{
    ret_names[0] = optimizer->momentum != 0 ? "momentum_buffer" : NULL;
}

static int sgd_build(struct build *build, const struct update *update, struct err *err)
{
    const struct job_optimizer *args = &build_job(build)->optimizer;
    const struct sgd_attr attr = {
        .momentum = args->momentum,
        .dampening = args->dampening,
        .weight_decay = update_weight_decay(build, update->parameter),
        .nesterov = args->nesterov,
    };
    return update_node(build, "sgd", &attr, sizeof attr, update, err);
}

const struct op_def op_sgd = {.name = "sgd", .mutates = UPDATE_MUTATES};
const struct optimizer_def optimizer_sgd = {sgd_state, sgd_build};
