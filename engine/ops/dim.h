/* dim.h: a layer's `dim`. Private to engine/ops. */
#ifndef ENGINE_OPS_DIM_H
#define ENGINE_OPS_DIM_H

#include "engine/graph/op.h"

/* Counts a layer's dim, which may be negative, from the front of `input`. Errors: ERR_MODEL_SHAPE
 * where the input has no such dimension, or it is the batch. */
int dim_resolve(const struct build *build, const struct job_layer *layer, const struct shape *input,
                int *ret_dim, struct err *err);

#endif
