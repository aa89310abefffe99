/* registry.h: all ops of ops.def, and the losses and optimizers made of them. */
#ifndef ENGINE_OPS_REGISTRY_H
#define ENGINE_OPS_REGISTRY_H

#include "engine/graph/op.h"

#define OP(name) extern const struct op_def op_##name;
#include "engine/ops/ops.def"
#undef OP

extern const struct loss_def loss_cross_entropy, loss_nll, loss_mse, loss_l1, loss_bce_with_logits;
extern const struct optimizer_def optimizer_sgd, optimizer_adam, optimizer_rmsprop;

/* op_registry.clip. */
int clip_grad_norm_build(struct build *build, struct value *first, struct value *last,
                         struct value **ret_scale, struct err *err);

/* op_registry.gather_parts. */
int gather_parts_build(struct build *build, struct value *parameter, int64_t share,
                       struct err *err);

/* op_registry.statistics. */
int statistics_build(struct build *build, struct value *x, enum phase phase, bool scaled,
                     struct value **ret_statistics, struct err *err);

extern const struct op_registry op_registry;

#endif
