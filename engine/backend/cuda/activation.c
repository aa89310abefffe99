/* activation.c: relu, gelu, silu, sigmoid, tanh and their gradients, in the layout in which the
 * first operand comes. */
#include "engine/backend/cuda/own.h"
#include "engine/ops/attr.h"

static int forward_run(const struct own *own, const struct kernel_args *args,
                       enum activation activation, struct err *err)
{
    const struct layout *layout = own->choice->in[0];
    return own_launched(launch_activation(activation, own_is_bf16(layout), args->in[0],
                                          args->out[0], own_count(layout), own->device->compute),
                        err);
}

static int grad_run(const struct own *own, const struct kernel_args *args,
                    enum activation activation, struct err *err)
{
    const struct layout *layout = own->choice->in[0];
    return own_launched(launch_activation_grad(activation, own_is_bf16(layout), args->in[0],
                                               args->in[1], args->out[0], own_count(layout),
                                               own->device->compute),
                        err);
}

static enum activation gelu_of(const struct own *own)
{
    const struct gelu_attr *attr = own->node->attr;
    return attr->tanh ? ACTIVATION_GELU_TANH : ACTIVATION_GELU;
}

static int gelu_run(void *state, const struct kernel_args *args, struct err *err)
{
    return forward_run(state, args, gelu_of(state), err);
}

static int gelu_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    return grad_run(state, args, gelu_of(state), err);
}

#define ROWS(name)                                                                                 \
    const struct kernel kernel_##name = {#name, own_query_elementwise, own_create, name##_run,     \
                                         own_destroy};                                             \
    const struct kernel kernel_##name##_grad = {#name "_grad", own_query_elementwise_grad,         \
                                                own_create, name##_grad_run, own_destroy}

/* An activation that is the same for every node. */
#define ACTIVATION(name, activation)                                                               \
    static int name##_run(void *state, const struct kernel_args *args, struct err *err)            \
    {                                                                                              \
        return forward_run(state, args, activation, err);                                          \
    }                                                                                              \
    static int name##_grad_run(void *state, const struct kernel_args *args, struct err *err)       \
    {                                                                                              \
        return grad_run(state, args, activation, err);                                             \
    }                                                                                              \
    ROWS(name)

ACTIVATION(relu, ACTIVATION_RELU);
ACTIVATION(silu, ACTIVATION_SILU);
ACTIVATION(sigmoid, ACTIVATION_SIGMOID);
ACTIVATION(tanh, ACTIVATION_TANH);
ROWS(gelu);
