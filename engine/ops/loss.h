/* loss.h: what the losses have in common. Private to engine/ops. */
#ifndef ENGINE_OPS_LOSS_H
#define ENGINE_OPS_LOSS_H

#include "engine/graph/op.h"

/* Appends OP(output, target) -> loss, output's gradient?: op.h's loss_def.build. */
int loss_build(struct build *build, const char *op, struct value *output, struct value *target,
               struct value **ret_loss, struct value **ret_grad, struct err *err);

#endif
