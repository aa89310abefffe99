/* mse.c: torch.nn.MSELoss against targets of the output's shape. */
#include "engine/ops/loss.h"
#include "engine/ops/registry.h"

static int mse_target(struct model *model, struct err *err)
{
    (void)err;
    model->target = model->output;
    model->target_dtype = DTYPE_F32;
    model->classes = model->output.rank == 1 ? model->output.dim[0] : 0;
    model->loss_terms = shape_count(&model->output);
    return 0;
}

static int mse_build(struct build *build, struct value *output, struct value *target,
                     struct value **ret_loss, struct value **ret_grad, struct err *err)
{
    return loss_build(build, "mse", output, target, ret_loss, ret_grad, err);
}

const struct op_def op_mse = {.name = "mse"};
const struct loss_def loss_mse = {mse_target, mse_build, NULL};
