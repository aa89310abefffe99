#include "engine/ops/grad.h"

/* The gradient of an optional parameter as the next output: its variable, or where the parameter is
 * computed from others a value that flows on. */
static int out_gradient(struct build *build, struct node *node, const struct value *parameter,
                        struct value **ret_gradient, struct err *err)
{
    *ret_gradient = NULL;
    if (parameter == NULL)
        return 0;
    if (parameter->kind != VALUE_VARIABLE) {
        *ret_gradient = build_out(build, node, parameter->shape, DTYPE_F32, err);
        return *ret_gradient == NULL ? err->code : 0;
    }
    struct value *gradient = build_gradient(build, parameter, err);
    if (gradient == NULL)
        return err->code;
    build_out_value(node, gradient);
    return 0;
}

int grad_weight(struct build *build, const struct node *node, const char *op,
                struct value *out_grad, struct value **in_grad, struct err *err)
{
    if (!node->in[1]->needs_grad)
        return 0;
    struct node *grad = build_grad_node(build, op, PHASE_WEIGHT_GRAD, node, err);
    if (grad == NULL)
        return err->code;
    build_in(grad, node->in[0]);
    build_in(grad, out_grad);
    int rc = out_gradient(build, grad, node->in[1], &in_grad[1], err);
    return rc != 0 ? rc : out_gradient(build, grad, node->in[2], &in_grad[2], err);
}

int grad_input(struct build *build, const struct node *node, const char *op, struct value *out_grad,
               struct value **in_grad, struct err *err)
{
    if (!node->in[0]->needs_grad)
        return 0;
    return grad_unary(build, node, op, out_grad, node->in[1], in_grad, err);
}

int grad_unary(struct build *build, const struct node *node, const char *op, struct value *first,
               struct value *second, struct value **in_grad, struct err *err)
{
    struct node *grad = build_grad_node(build, op, PHASE_INPUT_GRAD, node, err);
    if (grad == NULL)
        return err->code;
    if (first != NULL)
        build_in(grad, first);
    if (second != NULL)
        build_in(grad, second);
    in_grad[0] = build_out(build, grad, node->in[0]->shape, node->in[0]->dtype, err);
    return in_grad[0] == NULL ? err->code : 0;
}

int grad_norm(struct build *build, const struct node *node, const char *op, struct value *out_grad,
              struct value **in_grad, struct err *err)
{
    struct node *grad = build_grad_node(build, op, PHASE_INPUT_GRAD, node, err);
    if (grad == NULL)
        return err->code;
    build_in(grad, node->in[0]);
    build_in(grad, out_grad);
    build_in(grad, node->in[1]);
    build_in(grad, node->out[1]);
    build_in(grad, node->out[2]);
    struct value *input_grad = build_out(build, grad, node->in[0]->shape, DTYPE_F32, err);
    if (input_grad == NULL)
        return err->code;
    in_grad[0] = node->in[0]->needs_grad ? input_grad : NULL;
    for (int i = 1; i <= 2 && node->in[i] != NULL && node->in[i]->needs_grad; i++) {
        struct value *gradient = build_gradient(build, node->in[i], err);
        if (gradient == NULL)
            return err->code;
        build_out_value(grad, gradient);
    }
    return 0;
}
