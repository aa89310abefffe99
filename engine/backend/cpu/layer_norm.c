/* layer_norm.c: layer_norm and its gradient: torch.nn.LayerNorm, by oneDNN on plain rows. The saved
 * spread is the variance. */
#include <stdio.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/primitive.h"
#include "engine/backend/cpu/program.h"
#include "engine/ops/attr.h"

enum { X, WEIGHT, BIAS };                                      /* inputs of layer_norm */
enum { Y, MEAN, SPREAD };                                      /* its outputs */
enum { GRAD_X, GRAD_GY, GRAD_WEIGHT, GRAD_MEAN, GRAD_SPREAD }; /* inputs of layer_norm_grad */
enum { GRAD_GX, GRAD_GW, GRAD_GB };                            /* its outputs */

/* x as rows that are normalised. NULL without memory. */
static const struct layout *rows(struct program *program, int64_t *ret_n)
{
    const struct layer_norm_attr *attr = program->node->attr;
    const struct shape *x = &program->node->in[X]->shape;
    int64_t row = 1;
    for (int i = x->rank - attr->dims; i < x->rank; i++)
        row *= x->dim[i];
    *ret_n = shape_count(x) / row;
    return layout_plain(program->arena, &SHAPE(*ret_n, row), program->node->in[X]->dtype);
}

/* The call of that kind, with every input and output of the node plain. */
static int layer_norm_call(struct program *program, dnnl_prop_kind_t kind, unsigned flags,
                           struct kernel_choice *ret_choice, struct call **ret_call,
                           struct err *err)
{
    const struct layer_norm_attr *attr = program->node->attr;
    int rc = own_query_plain(program->node, NULL, program->arena, ret_choice, err);
    if (rc)
        return rc;
    int64_t n;
    const struct layout *x = rows(program, &n);
    const struct layout *statistics = layout_plain(program->arena, &SHAPE(n), DTYPE_F32);
    if (!x || !statistics)
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    dnnl_primitive_desc_t desc;
    rc = primitive_layer_norm(program->engine, kind, x, statistics, attr->eps, flags, &desc, err);
    if (rc)
        return rc;
    snprintf(ret_choice->impl, sizeof ret_choice->impl, "%s", primitive_impl(desc));
    *ret_call = program_call(program, desc);
    return 0;
}

static int layer_norm_build(struct program *program, const struct node *node,
                            const struct layout *const *in, struct kernel_choice *ret_choice,
                            struct err *err)
{
    (void)in;
    bool training = own_out(node, MEAN) != NULL;
    unsigned flags =
        (own_in(node, WEIGHT) ? dnnl_use_scale : 0u) | (own_in(node, BIAS) ? dnnl_use_shift : 0u);
    struct call *call;
    int rc = layer_norm_call(program, training ? dnnl_forward_training : dnnl_forward_inference,
                             flags, ret_choice, &call, err);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_SRC, program_in(X));
    if (flags & dnnl_use_scale)
        program_bind(call, DNNL_ARG_SCALE, program_in(WEIGHT));
    if (flags & dnnl_use_shift)
        program_bind(call, DNNL_ARG_SHIFT, program_in(BIAS));
    program_bind(call, DNNL_ARG_DST, program_out(Y));
    if (training) {
        program_bind(call, DNNL_ARG_MEAN, program_out(MEAN));
        program_bind(call, DNNL_ARG_VARIANCE, program_out(SPREAD));
    } else {
        ret_choice->inplace[Y] = X;
    }
    return 0;
}

static int layer_norm_grad_build(struct program *program, const struct node *node,
                                 const struct layout *const *in, struct kernel_choice *ret_choice,
                                 struct err *err)
{
    (void)in;
    bool affine = own_in(node, GRAD_WEIGHT) != NULL, trained = own_out(node, GRAD_GW) != NULL;
    bool shifted = own_out(node, GRAD_GB) != NULL;
    struct call *call;
    /* oneDNN gives the gradients of a scale that it uses, also where nobody trains it. */
    int rc = layer_norm_call(program, affine ? dnnl_backward : dnnl_backward_data,
                             (affine ? dnnl_use_scale : 0u) | (shifted ? dnnl_use_shift : 0u),
                             ret_choice, &call, err);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_SRC, program_in(GRAD_X));
    program_bind(call, DNNL_ARG_DIFF_DST, program_in(GRAD_GY));
    program_bind(call, DNNL_ARG_MEAN, program_in(GRAD_MEAN));
    program_bind(call, DNNL_ARG_VARIANCE, program_in(GRAD_SPREAD));
    program_bind(call, DNNL_ARG_DIFF_SRC, program_out(GRAD_GX));
    if (affine) {
        size_t bytes = (size_t)shape_count(&node->in[GRAD_WEIGHT]->shape) * sizeof(float);
        program_bind(call, DNNL_ARG_SCALE, program_in(GRAD_WEIGHT));
        program_bind(call, DNNL_ARG_DIFF_SCALE,
                     trained ? program_out(GRAD_GW) : program_scratch(program, bytes));
    }
    if (shifted) {
        /* It asks for the shift though no gradient depends on it: any F floats do. */
        program_bind(call, DNNL_ARG_SHIFT, program_in(GRAD_WEIGHT));
        program_bind(call, DNNL_ARG_DIFF_SHIFT, program_out(GRAD_GB));
    }
    ret_choice->inplace[GRAD_GX] = GRAD_GY;
    return 0;
}

PROGRAM_KERNEL(layer_norm, program_run);
PROGRAM_KERNEL(layer_norm_grad, program_run);
