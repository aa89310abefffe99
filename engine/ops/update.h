/* update.h: what the optimizers have in common. Private to engine/ops. */
#ifndef ENGINE_OPS_UPDATE_H
#define ENGINE_OPS_UPDATE_H

#include "engine/graph/op.h"

/* Appends OP(parameter, gradient, scale?, state...). `attr` is copied. */
int update_node(struct build *build, const char *op, const void *attr, size_t attr_size,
                const struct update *update, struct err *err);
/* The weight decay of this parameter: the job's, or 0 where no_decay names it. */
double update_weight_decay(const struct build *build, const struct value *parameter);

/* op_def.mutates of an update with state: the parameter and what stands behind `scale`. */
enum { UPDATE_MUTATES = 1u << 0 | 1u << 3 | 1u << 4 | 1u << 5 };

#endif
