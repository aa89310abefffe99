/* fold.h: what add and mul have in common. Private to engine/ops. */
#ifndef ENGINE_OPS_FOLD_H
#define ENGINE_OPS_FOLD_H

#include "engine/graph/op.h"

/* A layer's node OP(a, b, …) -> y of inputs that have one shape. Errors: ERR_MODEL_SHAPE. */
int fold_build(struct build *build, const char *op, const struct job_layer *layer,
               struct value *const *in, int n_in, struct value **ret_out, struct err *err);

#endif
