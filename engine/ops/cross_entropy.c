/* cross_entropy.c: torch.nn.CrossEntropyLoss of logits against class numbers. */
#include "engine/ops/loss.h"
#include "engine/ops/registry.h"

static int cross_entropy_build(struct build *build, struct value *output, struct value *target,
                               struct value **ret_loss, struct value **ret_grad, struct err *err)
{
    return loss_class_build(build, "cross_entropy", output, target, ret_loss, ret_grad, err);
}

const struct op_def op_cross_entropy = {.name = "cross_entropy"};
const struct op_def op_argmax = {.name = "argmax"};
const struct loss_def loss_cross_entropy = {loss_class_target, loss_class_divisor,
                                            cross_entropy_build, loss_class_predict};
