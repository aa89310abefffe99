/* mse.c: torch.nn.MSELoss and L1Loss against targets of the output's shape. */
#include "engine/ops/loss.h"
#include "engine/ops/registry.h"

static int mse_build(struct build *build, struct value *output, struct value *target,
                     struct value **ret_loss, struct value **ret_grad, struct err *err)
{
    return loss_build(build, "mse", NULL, 0, output, target, ret_loss, ret_grad, err);
}

static int l1_build(struct build *build, struct value *output, struct value *target,
                    struct value **ret_loss, struct value **ret_grad, struct err *err)
{
    return loss_build(build, "l1", NULL, 0, output, target, ret_loss, ret_grad, err);
}

const struct op_def op_mse = {.name = "mse"};
const struct op_def op_l1 = {.name = "l1"};
const struct loss_def loss_mse = {loss_value_target, NULL, mse_build, NULL};
const struct loss_def loss_l1 = {loss_value_target, NULL, l1_build, NULL};
