/* sgd.c: torch.optim.SGD. */
#include "engine/ops/attr.h"
#include "engine/ops/registry.h"

static int sgd_state(const struct job_optimizer *optimizer, const char **ret_names)
{
    ret_names[0] = "momentum_buffer";
    return optimizer->momentum != 0 ? 1 : 0;
}

static int sgd_build(struct build *build, struct value *parameter, struct value *gradient,
                     struct value *const *state, struct err *err)
{
    const struct job_optimizer *args = &build_job(build)->optimizer;
    const struct sgd_attr attr = {.momentum = args->momentum,
                                  .dampening = args->dampening,
                                  .weight_decay = args->weight_decay,
                                  .nesterov = args->nesterov};
    struct node *node = build_node(build, "sgd", PHASE_UPDATE, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, parameter);
    build_in(node, gradient);
    build_in(node, state[0]);
    return 0;
}

const struct op_def op_sgd = {.name = "sgd", .mutates = 1u << 0 | 1u << 2};
const struct optimizer_def optimizer_sgd = {sgd_state, sgd_build};
