/* grad.h: what the gradients of several ops have in common. Private to engine/ops. */
#ifndef ENGINE_OPS_GRAD_H
#define ENGINE_OPS_GRAD_H

#include "engine/graph/op.h"

/* Of a node (x, weight, bias?) -> y: appends OP(x, gy) -> gradient of weight, of bias. Nothing
 * where the weight needs none. What is no variable flows on: it is set in in_grad. */
int grad_weight(struct build *build, const struct node *node, const char *op,
                struct value *out_grad, struct value **in_grad, struct err *err);
/* Of a node (x, weight, …) -> y: appends OP(gy, weight) -> gx, set in in_grad[0]. Nothing where x
 * needs none. */
int grad_input(struct build *build, const struct node *node, const char *op, struct value *out_grad,
               struct value **in_grad, struct err *err);
/* Of a node with one input: appends OP(first?, second?) -> gx, shaped as the input. NULL: absent,
 * and no input of the new node. */
int grad_unary(struct build *build, const struct node *node, const char *op, struct value *first,
               struct value *second, struct value **in_grad, struct err *err);
/* Of a normalisation (x, weight?, bias?, …) -> y, mean, spread: appends OP(x, gy, weight, mean,
 * spread) -> gx, gradient of weight, of bias. */
int grad_norm(struct build *build, const struct node *node, const char *op, struct value *out_grad,
              struct value **in_grad, struct err *err);

#endif
