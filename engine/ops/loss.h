/* loss.h: what the losses have in common. Private to engine/ops. */
#ifndef ENGINE_OPS_LOSS_H
#define ENGINE_OPS_LOSS_H

#include "engine/graph/op.h"

/* Appends OP(output, target) -> loss, output's gradient?: op.h's loss_def.build. `attr` is copied;
 * NULL: none. */
int loss_build(struct build *build, const char *op, const void *attr, size_t attr_size,
               struct value *output, struct value *target, struct value **ret_loss,
               struct value **ret_grad, struct err *err);

/* Targets of the output's shape: loss_def.target. */
int loss_value_target(struct model *model, struct err *err);

/* Losses of class numbers, the output's last dimension being the classes: [N, C] for targets [N],
 * [N, T, C] for [N, T]. loss_def.target, .divisor, .predict, and a .build of the op named. */
int loss_class_target(struct model *model, struct err *err);
double loss_class_divisor(const struct model *model, const void *targets, int64_t n);
int loss_class_build(struct build *build, const char *op, struct value *output,
                     struct value *target, struct value **ret_loss, struct value **ret_grad,
                     struct err *err);
int loss_class_predict(struct build *build, struct value *output, struct value **ret_prediction,
                       struct err *err);

#endif
