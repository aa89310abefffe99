/* linear.c: linear and its gradients: torch.nn.Linear.
 *
 * All operands are plain: oneDNN multiplies row-major matrices where they lie about as fast as it
 * multiplies blocked ones, less the reorder of the weight (doc/onednn.md has the times).
 */
#include <stdio.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/primitive.h"
#include "engine/backend/cpu/program.h"

/* [..., F] as rows of F. NULL without memory. */
static const struct layout *rows(struct program *program, const struct value *value)
{
    int64_t columns = value->shape.dim[value->shape.rank - 1];
    struct shape shape = SHAPE(shape_count(&value->shape) / columns, columns);
    return layout_plain(program->arena, &shape, value->dtype);
}

/* The call of that kind, with every input and output of the node plain. */
static int linear_call(struct program *program, dnnl_prop_kind_t kind, const struct value *x,
                       const struct value *w, const struct value *b, const struct value *y,
                       struct kernel_choice *ret_choice, struct call **ret_call, struct err *err)
{
    int rc = own_query_plain(program->node, NULL, program->arena, ret_choice, err);
    if (rc)
        return rc;
    struct inner_product product = {.x = rows(program, x),
                                    .w = rows(program, w),
                                    .b = b ? layout_plain(program->arena, &b->shape, DTYPE_F32)
                                           : NULL,
                                    .y = rows(program, y)};
    if (!product.x || !product.w || !product.y || (b && !product.b))
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    dnnl_primitive_desc_t desc;
    rc = primitive_inner_product(program->engine, kind, &product, &desc, err);
    if (rc)
        return rc;
    *ret_call = program_call(program, desc);
    snprintf(ret_choice->impl, sizeof ret_choice->impl, "%s", primitive_impl(desc));
    return 0;
}

static int linear_build(struct program *program, const struct node *node,
                        const struct layout *const *in, struct kernel_choice *ret_choice,
                        struct err *err)
{
    (void)in;
    const struct value *bias = own_in(node, 2);
    struct call *call;
    int rc = linear_call(program, dnnl_forward_training, node->in[0], node->in[1], bias,
                         node->out[0], ret_choice, &call, err);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_SRC, program_in(0));
    program_bind(call, DNNL_ARG_WEIGHTS, program_in(1));
    if (bias)
        program_bind(call, DNNL_ARG_BIAS, program_in(2));
    program_bind(call, DNNL_ARG_DST, program_out(0));
    return 0;
}

static int linear_input_grad_build(struct program *program, const struct node *node,
                                   const struct layout *const *in, struct kernel_choice *ret_choice,
                                   struct err *err)
{
    (void)in;
    struct call *call;
    int rc = linear_call(program, dnnl_backward_data, node->out[0], node->in[1], NULL, node->in[0],
                         ret_choice, &call, err);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_DIFF_DST, program_in(0));
    program_bind(call, DNNL_ARG_WEIGHTS, program_in(1));
    program_bind(call, DNNL_ARG_DIFF_SRC, program_out(0));
    return 0;
}

static int linear_weight_grad_build(struct program *program, const struct node *node,
                                    const struct layout *const *in,
                                    struct kernel_choice *ret_choice, struct err *err)
{
    (void)in;
    const struct value *bias = own_out(node, 1);
    struct call *call;
    int rc = linear_call(program, dnnl_backward_weights, node->in[0], node->out[0], bias,
                         node->in[1], ret_choice, &call, err);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_SRC, program_in(0));
    program_bind(call, DNNL_ARG_DIFF_DST, program_in(1));
    program_bind(call, DNNL_ARG_DIFF_WEIGHTS, program_out(0));
    if (bias)
        program_bind(call, DNNL_ARG_DIFF_BIAS, program_out(1));
    return 0;
}

PROGRAM_KERNEL(linear, program_run);
PROGRAM_KERNEL(linear_input_grad, program_run);
PROGRAM_KERNEL(linear_weight_grad, program_run);
