/* batch_norm.c: batch_norm, batch_norm_eval, batch_norm_grad: torch.nn.BatchNorm1d and 2d.
 *
 * oneDNN normalises in the layout in which x lies, and gives the batch's mean and biased variance;
 * the running statistics are ours. The saved spread is the variance.
 */
#include <stdio.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/primitive.h"
#include "engine/backend/cpu/program.h"
#include "engine/ops/attr.h"

/* x, and what has its shape, lie as x comes where that is a grid, else plain. NULL without memory.
 */
static const struct layout *layout_of_x(struct program *program, const struct layout *x)
{
    return x->block ? x : layout_plain(program->arena, &x->shape, x->dtype);
}

static int batch_norm_call(struct program *program, dnnl_prop_kind_t kind, const struct layout *in,
                           bool affine, struct kernel_choice *ret_choice, struct call **ret_call,
                           struct err *err)
{
    const struct batch_norm_attr *attr = program->node->attr;
    int rc = own_query_plain(program->node, NULL, program->arena, ret_choice, err);
    if (rc)
        return rc;
    const struct layout *x = layout_of_x(program, in);
    if (!x)
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    dnnl_primitive_desc_t desc;
    rc = primitive_batch_norm(program->engine, kind, x, attr->eps, affine, &desc, err);
    if (rc)
        return rc;
    ret_choice->in[0] = ret_choice->out[0] = x;
    snprintf(ret_choice->impl, sizeof ret_choice->impl, "%s", primitive_impl(desc));
    *ret_call = program_call(program, desc);
    return 0;
}

static void bind_affine(struct call *call, int weight)
{
    program_bind(call, DNNL_ARG_SCALE, program_in(weight));
    program_bind(call, DNNL_ARG_SHIFT, program_in(weight + 1));
}

enum { X, WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR, TRACKED }; /* inputs */
enum { Y, MEAN, SPREAD };                                     /* outputs */

static int batch_norm_build(struct program *program, const struct node *node,
                            const struct layout *const *in, struct kernel_choice *ret_choice,
                            struct err *err)
{
    bool affine = own_in(node, WEIGHT) != NULL;
    struct call *call;
    int rc = batch_norm_call(program, dnnl_forward_training, in[X], affine, ret_choice, &call, err);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_SRC, program_in(X));
    if (affine)
        bind_affine(call, WEIGHT);
    program_bind(call, DNNL_ARG_DST, program_out(Y));
    program_bind(call, DNNL_ARG_MEAN, program_out(MEAN));
    program_bind(call, DNNL_ARG_VARIANCE, program_out(SPREAD));
    return 0;
}

static int batch_norm_eval_build(struct program *program, const struct node *node,
                                 const struct layout *const *in, struct kernel_choice *ret_choice,
                                 struct err *err)
{
    bool affine = own_in(node, WEIGHT) != NULL;
    struct call *call;
    int rc =
        batch_norm_call(program, dnnl_forward_inference, in[X], affine, ret_choice, &call, err);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_SRC, program_in(X));
    if (affine)
        bind_affine(call, WEIGHT);
    program_bind(call, DNNL_ARG_MEAN, program_in(RUNNING_MEAN));
    program_bind(call, DNNL_ARG_VARIANCE, program_in(RUNNING_VAR));
    program_bind(call, DNNL_ARG_DST, program_out(Y));
    ret_choice->inplace[Y] = X;
    return 0;
}

/* The running statistics as PyTorch moves them: the unbiased variance, in double. */
static void track(const struct node *node, const struct kernel_args *args)
{
    const struct batch_norm_attr *attr = node->attr;
    const struct shape *shape = &node->in[X]->shape;
    int64_t channels = shape->dim[1], count = shape_count(shape) / channels;
    double momentum = attr->momentum, unbias = (double)count / (double)(count - 1);
    const float *mean = args->out[MEAN], *variance = args->out[SPREAD];
    float *running_mean = args->in[RUNNING_MEAN], *running_var = args->in[RUNNING_VAR];
    for (int64_t c = 0; c < channels; c++) {
        running_mean[c] =
            (float)(momentum * (double)mean[c] + (1 - momentum) * (double)running_mean[c]);
        running_var[c] = (float)(momentum * unbias * (double)variance[c] +
                                 (1 - momentum) * (double)running_var[c]);
    }
    if (own_in(node, TRACKED))
        *(int64_t *)args->in[TRACKED] += 1;
}

static int batch_norm_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct program *program = state;
    int rc = program_run(state, args, err);
    if (rc == 0 && own_in(program->node, RUNNING_MEAN))
        track(program->node, args);
    return rc;
}

enum { GRAD_X, GRAD_GY, GRAD_WEIGHT, GRAD_MEAN, GRAD_SPREAD }; /* inputs of batch_norm_grad */

static int batch_norm_grad_build(struct program *program, const struct node *node,
                                 const struct layout *const *in, struct kernel_choice *ret_choice,
                                 struct err *err)
{
    bool affine = own_in(node, GRAD_WEIGHT) != NULL, trained = own_out(node, 1) != NULL;
    struct call *call;
    /* oneDNN gives the gradients of a scale that it uses, also where nobody trains it. */
    int rc = batch_norm_call(program, affine ? dnnl_backward : dnnl_backward_data, in[GRAD_X],
                             affine, ret_choice, &call, err);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_SRC, program_in(GRAD_X));
    program_bind(call, DNNL_ARG_DIFF_DST, program_in(GRAD_GY));
    program_bind(call, DNNL_ARG_MEAN, program_in(GRAD_MEAN));
    program_bind(call, DNNL_ARG_VARIANCE, program_in(GRAD_SPREAD));
    program_bind(call, DNNL_ARG_DIFF_SRC, program_out(0));
    if (affine) {
        size_t bytes = (size_t)shape_count(&node->in[GRAD_WEIGHT]->shape) * sizeof(float);
        program_bind(call, DNNL_ARG_SCALE, program_in(GRAD_WEIGHT));
        /* It asks for the shift though no gradient depends on it: any C floats do. */
        program_bind(call, DNNL_ARG_SHIFT, program_in(GRAD_WEIGHT));
        program_bind(call, DNNL_ARG_DIFF_SCALE,
                     trained ? program_out(1) : program_scratch(program, bytes));
        program_bind(call, DNNL_ARG_DIFF_SHIFT,
                     trained ? program_out(2) : program_scratch(program, bytes));
    }
    ret_choice->in[GRAD_GY] = ret_choice->in[GRAD_X];
    ret_choice->inplace[0] = GRAD_GY;
    return 0;
}

PROGRAM_KERNEL(batch_norm, batch_norm_run);
PROGRAM_KERNEL(batch_norm_eval, program_run);
PROGRAM_KERNEL(batch_norm_grad, program_run);
