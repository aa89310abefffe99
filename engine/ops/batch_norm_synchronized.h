/* batch_norm_synchronized.h: BatchNorm over all replicas' chunks as one batch. Private to
 * engine/ops. */
#ifndef ENGINE_OPS_BATCH_NORM_SYNCHRONIZED_H
#define ENGINE_OPS_BATCH_NORM_SYNCHRONIZED_H

#include "engine/ops/attr.h"
#include "engine/ops/grad.h"

struct batch_norm_variables { /* NULL: absent */
    struct value *weight, *bias, *mean, *var, *tracked;
};

/* Whether the job asks for it and there are others to ask. */
bool batch_norm_synchronizes(const struct build *build);
/* Appends the nodes; the last is a batch_norm_eval. */
int batch_norm_synchronized_build(struct build *build, const struct batch_norm_attr *attr,
                                  struct value *input, const struct batch_norm_variables *variables,
                                  struct value **ret_out, struct err *err);
/* op_def.grad of that batch_norm_eval. */
int batch_norm_synchronized_grad(struct build *build, const struct node *node,
                                 struct value *const *out_grad, struct value **in_grad,
                                 struct err *err);

#endif
