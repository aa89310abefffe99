/* unary.h: layers of one input whose output has its shape. Private to engine/ops. */
#ifndef ENGINE_OPS_UNARY_H
#define ENGINE_OPS_UNARY_H

#include "engine/graph/op.h"

/* Appends OP(input) -> *ret_out; `attr` is copied, NULL: none. */
int unary_build(struct build *build, const char *op, const void *attr, size_t attr_size,
                struct value *input, struct value **ret_out, struct err *err);

#endif
