/* activation.c: gelu, silu, sigmoid, tanh and their gradients, by oneDNN's eltwise, which keeps a
 * NaN and is within 1e-6. In the layout in which the first operand comes. */
#include <stdio.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/primitive.h"
#include "engine/backend/cpu/program.h"
#include "engine/ops/attr.h"

static int activation_call(struct program *program, const struct layout *const *in,
                           dnnl_prop_kind_t kind, dnnl_alg_kind_t algorithm,
                           struct kernel_choice *ret_choice, struct call **ret_call,
                           struct err *err)
{
    int rc = own_query_dense(program->node, in, program->arena, ret_choice, err);
    dnnl_primitive_desc_t desc;
    if (rc == 0)
        rc = primitive_eltwise(program->engine, kind, algorithm, ret_choice->in[0], &desc, err);
    if (rc)
        return rc;
    snprintf(ret_choice->impl, sizeof ret_choice->impl, "%s", primitive_impl(desc));
    *ret_call = program_call(program, desc);
    return 0;
}

static int forward_build(struct program *program, const struct layout *const *in,
                         dnnl_alg_kind_t algorithm, struct kernel_choice *ret_choice,
                         struct err *err)
{
    struct call *call;
    int rc = activation_call(program, in, dnnl_forward_training, algorithm, ret_choice, &call, err);
    if (rc)
        return rc;
    program_bind(call, DNNL_ARG_SRC, program_in(0));
    program_bind(call, DNNL_ARG_DST, program_out(0));
    ret_choice->inplace[0] = 0;
    return 0;
}

/* saved: what the gradient reads beside gy, DNNL_ARG_SRC or DNNL_ARG_DST. */
static int grad_build(struct program *program, const struct layout *const *in,
                      dnnl_alg_kind_t algorithm, int saved, struct kernel_choice *ret_choice,
                      struct err *err)
{
    struct call *call;
    int rc = activation_call(program, in, dnnl_backward_data, algorithm, ret_choice, &call, err);
    if (rc)
        return rc;
    program_bind(call, saved, program_in(0));
    program_bind(call, DNNL_ARG_DIFF_DST, program_in(1));
    program_bind(call, DNNL_ARG_DIFF_SRC, program_out(0));
    ret_choice->inplace[0] = 1;
    return 0;
}

static dnnl_alg_kind_t gelu_algorithm(const struct node *node)
{
    const struct gelu_attr *attr = node->attr;
    return attr->tanh ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf;
}

static int gelu_build(struct program *program, const struct node *node,
                      const struct layout *const *in, struct kernel_choice *ret_choice,
                      struct err *err)
{
    return forward_build(program, in, gelu_algorithm(node), ret_choice, err);
}

static int gelu_grad_build(struct program *program, const struct node *node,
                           const struct layout *const *in, struct kernel_choice *ret_choice,
                           struct err *err)
{
    return grad_build(program, in, gelu_algorithm(node), DNNL_ARG_SRC, ret_choice, err);
}

/* A row whose algorithm is the same for every node. */
#define FORWARD(name, algorithm)                                                                   \
    static int name##_build(struct program *program, const struct node *node,                      \
                            const struct layout *const *in, struct kernel_choice *ret_choice,      \
                            struct err *err)                                                       \
    {                                                                                              \
        (void)node;                                                                                \
        return forward_build(program, in, algorithm, ret_choice, err);                             \
    }                                                                                              \
    PROGRAM_KERNEL(name, program_run)
#define GRADIENT(name, algorithm, saved)                                                           \
    static int name##_build(struct program *program, const struct node *node,                      \
                            const struct layout *const *in, struct kernel_choice *ret_choice,      \
                            struct err *err)                                                       \
    {                                                                                              \
        (void)node;                                                                                \
        return grad_build(program, in, algorithm, saved, ret_choice, err);                         \
    }                                                                                              \
    PROGRAM_KERNEL(name, program_run)

PROGRAM_KERNEL(gelu, program_run);
PROGRAM_KERNEL(gelu_grad, program_run);
FORWARD(silu, dnnl_eltwise_swish);
GRADIENT(silu_grad, dnnl_eltwise_swish, DNNL_ARG_SRC);
FORWARD(sigmoid, dnnl_eltwise_logistic);
GRADIENT(sigmoid_grad, dnnl_eltwise_logistic_use_dst_for_bwd, DNNL_ARG_DST);
FORWARD(tanh, dnnl_eltwise_tanh);
GRADIENT(tanh_grad, dnnl_eltwise_tanh_use_dst_for_bwd, DNNL_ARG_DST);
