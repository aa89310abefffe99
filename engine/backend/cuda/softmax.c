/* softmax.c: softmax, log_softmax and their gradients, over any dimension. */
#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/rows.h"
#include "engine/ops/attr.h"

static struct softmax_launch softmax_of(const struct own *own)
{
    const struct softmax_attr *attr = own->node->attr;
    const struct shape *shape = &own->node->in[0]->shape;
    struct softmax_launch softmax = {1, shape->dim[attr->dim], 1};
    for (int i = 0; i < attr->dim; i++)
        softmax.outer *= shape->dim[i];
    for (int i = attr->dim + 1; i < shape->rank; i++)
        softmax.inner *= shape->dim[i];
    return softmax;
}

static int forward_run(const struct own *own, const struct kernel_args *args, bool logarithm,
                       struct err *err)
{
    const struct softmax_launch softmax = softmax_of(own);
    return own_launched(
        launch_softmax(logarithm, &softmax, args->in[0], args->out[0], own->device->compute), err);
}

static int grad_run(const struct own *own, const struct kernel_args *args, bool logarithm,
                    struct err *err)
{
    const struct softmax_launch softmax = softmax_of(own);
    return own_launched(launch_softmax_grad(logarithm, &softmax, args->in[0], args->in[1],
                                            args->out[0], own->device->compute),
                        err);
}

static int softmax_run(void *state, const struct kernel_args *args, struct err *err)
{
    return forward_run(state, args, false, err);
}

static int softmax_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    return grad_run(state, args, false, err);
}

static int log_softmax_run(void *state, const struct kernel_args *args, struct err *err)
{
    return forward_run(state, args, true, err);
}

static int log_softmax_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    return grad_run(state, args, true, err);
}

/* A thread reads an element before it writes there, and nobody else's. */
static int softmax_query(const struct node *node, const struct layout *const *in,
                         struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->inplace[0] = node->n_in - 1; /* gy, where there is one */
    return rc;
}

const struct kernel kernel_softmax = {"softmax", softmax_query, own_create, softmax_run,
                                      own_destroy};
const struct kernel kernel_softmax_grad = {"softmax_grad", softmax_query, own_create,
                                           softmax_grad_run, own_destroy};
const struct kernel kernel_log_softmax = {"log_softmax", softmax_query, own_create, log_softmax_run,
                                          own_destroy};
const struct kernel kernel_log_softmax_grad = {"log_softmax_grad", softmax_query, own_create,
                                               log_softmax_grad_run, own_destroy};
