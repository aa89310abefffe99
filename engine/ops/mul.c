/* mul.c: the product of tensors of one shape, element by element. */
#include "engine/ops/fold.h"
#include "engine/ops/registry.h"

static int mul_build(struct build *build, const struct job_layer *layer, struct value *const *in,
                     int n_in, struct value **ret_out, struct err *err)
{
    return fold_build(build, "mul", layer, in, n_in, ret_out, err);
}

/* Of an input: the product of the output's gradient and the other inputs. */
static int mul_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                    struct value **in_grad, struct err *err)
{
    for (int i = 0; i < node->n_in; i++) {
        if (!node->in[i]->needs_grad)
            continue;
        struct node *grad = build_grad_node(build, "mul", PHASE_INPUT_GRAD, node, err);
        if (grad == NULL)
            return err->code;
        build_in(grad, out_grad[0]);
        for (int k = 0; k < node->n_in; k++)
            if (k != i)
                build_in(grad, node->in[k]);
        in_grad[i] = build_out(build, grad, node->in[i]->shape, DTYPE_F32, err);
        if (in_grad[i] == NULL)
            return err->code;
    }
    return 0;
}

const struct op_def op_mul = {
    .name = "mul", .build = mul_build, .grad = mul_grad, .low = {LOW_IF_ALL, LOW_EVERY, 1}};
