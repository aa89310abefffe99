/* linear.h: the linear op for layers that are made of several. Private to engine/ops. */
#ifndef ENGINE_OPS_LINEAR_H
#define ENGINE_OPS_LINEAR_H

#include "engine/graph/op.h"

/* Appends x [..., F] times weight [O, F], transposed, plus bias [O] or NULL: *ret_out [..., O]. */
int linear_apply(struct build *build, struct value *x, struct value *weight, struct value *bias,
                 struct value **ret_out, struct err *err);

#endif
