/* nll.c: torch.nn.NLLLoss of log-probabilities (LogSoftmax) against class numbers. */
#include "engine/ops/loss.h"
#include "engine/ops/registry.h"

static int nll_build(struct build *build, struct value *output, struct value *target,
                     struct value **ret_loss, struct value **ret_grad, struct err *err)
{
    return loss_class_build(build, "nll", output, target, ret_loss, ret_grad, err);
}

const struct op_def op_nll = {.name = "nll"};
const struct loss_def loss_nll = {loss_class_target, loss_class_divisor, nll_build,
                                  loss_class_predict};
