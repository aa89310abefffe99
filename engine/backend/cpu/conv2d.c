/* conv2d.c: conv2d and its gradients: torch.nn.Conv2d.
 *
 * Activations lie as oneDNN's implementation likes them. The weight is a variable and so plain:
 * forward and input gradient reorder it into their scratch, the weight gradient reorders its
 * result. That is a weight's size moved a step, against batch times the positions of it in
 * arithmetic.
 *
 * For any geometry that has no JIT implementation (dilation with groups, say) oneDNN has im2col
 * with its GEMM on plain layouts, so no layer of PyTorch's is refused.
 */
#include <stdio.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/primitive.h"
#include "engine/backend/cpu/program.h"
#include "engine/ops/attr.h"

struct conv2d {
    struct convolution convolution;
    const struct layout *weight; /* the variable, seen as oneDNN's GOIHW where there are groups */
};

/* What the last window needs behind the input, and at least as much as is before it. */
static int64_t padding_end(const struct conv2d_attr *attr, const struct value *x,
                           const struct value *w, const struct value *y, int i)
{
    int64_t extent = attr->dilation[i] * (w->shape.dim[2 + i] - 1) + 1;
    int64_t end = (y->shape.dim[2 + i] - 1) * attr->stride[i] + extent - x->shape.dim[2 + i] -
                  attr->padding[i];
    return end > attr->padding[i] ? end : attr->padding[i];
}

static int conv2d_init(struct conv2d *conv, struct program *program, const struct value *x,
                       const struct value *w, const struct value *b, const struct value *y,
                       struct err *err)
{
    const struct conv2d_attr *attr = program->node->attr;
    struct shape weight = w->shape;
    if (attr->groups > 1)
        weight = SHAPE(attr->groups, w->shape.dim[0] / attr->groups, w->shape.dim[1],
                       w->shape.dim[2], w->shape.dim[3]);
    conv->convolution = (struct convolution){
        .x = x->shape,
        .y = y->shape,
        .w = weight,
        .dtype = x->dtype,
        .bias = b != NULL,
        .stride = attr->stride,
        .padding = attr->padding,
        .padding_end = {padding_end(attr, x, w, y, 0), padding_end(attr, x, w, y, 1)},
        .dilation = attr->dilation,
    };
    conv->weight = layout_plain(program->arena, &weight, w->dtype);
    return conv->weight ? 0 : err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
}

/* The primitive of that kind. Every layout of the choice is plain until the caller says otherwise.
 */
static int conv2d_desc(struct program *program, dnnl_prop_kind_t kind, const struct conv2d *conv,
                       struct kernel_choice *ret_choice, dnnl_primitive_desc_t *ret_desc,
                       struct err *err)
{
    int rc = own_query_plain(program->node, NULL, program->arena, ret_choice, err);
    if (rc == 0)
        rc = primitive_convolution(program->engine, kind, &conv->convolution, ret_desc, err);
    if (rc == 0)
        snprintf(ret_choice->impl, sizeof ret_choice->impl, "%s", primitive_impl(*ret_desc));
    return rc;
}

static int conv2d_build(struct program *program, const struct node *node,
                        const struct layout *const *in, struct kernel_choice *ret_choice,
                        struct err *err)
{
    (void)in;
    const struct value *bias = own_in(node, 2);
    struct conv2d conv;
    dnnl_primitive_desc_t desc;
    int rc = conv2d_init(&conv, program, node->in[0], node->in[1], bias, node->out[0], err);
    if (rc == 0)
        rc = conv2d_desc(program, dnnl_forward_training, &conv, ret_choice, &desc, err);
    if (rc)
        return rc;
    struct place weight;
    rc = program_fetch(program, desc, DNNL_ARG_WEIGHTS, conv.weight, 1, &weight, err);
    struct call *call = program_call(program, desc);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_SRC, program_in(0));
    program_bind(call, DNNL_ARG_WEIGHTS, weight);
    if (bias)
        program_bind(call, DNNL_ARG_BIAS, program_in(2));
    program_bind(call, DNNL_ARG_DST, program_out(0));
    rc = program_layout(program, desc, DNNL_ARG_SRC, &ret_choice->in[0], err);
    return rc ? rc : program_layout(program, desc, DNNL_ARG_DST, &ret_choice->out[0], err);
}

static int conv2d_input_grad_build(struct program *program, const struct node *node,
                                   const struct layout *const *in, struct kernel_choice *ret_choice,
                                   struct err *err)
{
    (void)in;
    struct conv2d conv;
    dnnl_primitive_desc_t desc;
    int rc = conv2d_init(&conv, program, node->out[0], node->in[1], NULL, node->in[0], err);
    if (rc == 0)
        rc = conv2d_desc(program, dnnl_backward_data, &conv, ret_choice, &desc, err);
    if (rc)
        return rc;
    struct place weight;
    rc = program_fetch(program, desc, DNNL_ARG_WEIGHTS, conv.weight, 1, &weight, err);
    struct call *call = program_call(program, desc);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_DIFF_DST, program_in(0));
    program_bind(call, DNNL_ARG_WEIGHTS, weight);
    program_bind(call, DNNL_ARG_DIFF_SRC, program_out(0));
    rc = program_layout(program, desc, DNNL_ARG_DIFF_DST, &ret_choice->in[0], err);
    return rc ? rc : program_layout(program, desc, DNNL_ARG_DIFF_SRC, &ret_choice->out[0], err);
}

static int conv2d_weight_grad_build(struct program *program, const struct node *node,
                                    const struct layout *const *in,
                                    struct kernel_choice *ret_choice, struct err *err)
{
    (void)in;
    const struct value *bias = own_out(node, 1);
    struct conv2d conv;
    dnnl_primitive_desc_t desc;
    int rc = conv2d_init(&conv, program, node->in[0], node->out[0], bias, node->in[1], err);
    if (rc == 0)
        rc = conv2d_desc(program, dnnl_backward_weights, &conv, ret_choice, &desc, err);
    if (rc)
        return rc;
    struct call *call = program_call(program, desc);
    program_bind(call, DNNL_ARG_SRC, program_in(0));
    program_bind(call, DNNL_ARG_DIFF_DST, program_in(1));
    if (bias)
        program_bind(call, DNNL_ARG_DIFF_BIAS, program_out(1));
    rc = program_layout(program, desc, DNNL_ARG_SRC, &ret_choice->in[0], err);
    if (rc == 0)
        rc = program_layout(program, desc, DNNL_ARG_DIFF_DST, &ret_choice->in[1], err);
    return rc ? rc : program_leave(program, call, DNNL_ARG_DIFF_WEIGHTS, conv.weight, 0, err);
}

PROGRAM_KERNEL(conv2d, program_run);
PROGRAM_KERNEL(conv2d_input_grad, program_run);
PROGRAM_KERNEL(conv2d_weight_grad, program_run);
