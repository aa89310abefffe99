/* trainer_plan.c: what a job would take, without touching a device. */
#include <stdlib.h>

#include "engine/train/prepare.h"

int trainer_plan(const struct trainer_config *config, struct trainer_plan *ret_plan,
                 struct err *err)
{
    struct prepared prepared;
    struct trainer_plan plan = {.devices = NULL};
    int rc = prepare(config, &prepared, err);
    if (rc != 0)
        goto out;
    plan.devices = calloc((size_t)config->n_devices, sizeof *plan.devices);
    if (plan.devices == NULL) {
        rc = err_set(err, ERR_NOMEM, "no memory for a plan");
        goto out;
    }
    rc = strategy_plan(&prepared.strategy, plan.devices, &plan.flops_per_step, err);
    if (rc != 0)
        goto out;
    const struct loader_config loader = prepared.train != NULL ? prepared_train_loader(&prepared, 0)
                                                               : prepared_eval_loader(&prepared);
    plan.parameters = prepared.model->n_parameters;
    plan.steps = prepared.steps;
    plan.steps_per_epoch = prepared.epoch_steps;
    plan.input_bytes = loader_bytes(&loader);
    *ret_plan = plan;
    plan.devices = NULL;
out:
    free(plan.devices);
    prepared_done(&prepared);
    return rc;
}

void trainer_plan_done(struct trainer_plan *plan)
{
    free(plan->devices);
    plan->devices = NULL;
}
