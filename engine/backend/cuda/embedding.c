/* embedding.c: embedding, positional_embedding, select_last and their gradients: vectors that are
 * looked up, a vector a step, the last valid step of each sample. */
#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/sequence.h"
#include "engine/ops/attr.h"

static struct embedding_launch embedding_of(const struct own *own, const struct value *w)
{
    const struct embedding_attr *attr = own->node->attr;
    const struct shape *index = &own->node->in[0]->shape;
    return (struct embedding_launch){
        .n = shape_count(index),
        .a_sample = shape_count(index) / index->dim[0],
        .rows = w->shape.dim[0],
        .size = w->shape.dim[1],
        .padding_row = attr ? attr->padding_row : -1,
    };
}

static int embedding_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct embedding_launch embedding = embedding_of(own, own->node->in[1]);
    return own_launched(launch_embedding(&embedding, args->in[0], args->in[1], args->out[0],
                                         own->device->step, own->device->fault,
                                         own->device->compute),
                        err);
}

static int embedding_weight_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct embedding_launch embedding = embedding_of(own, own->node->out[0]);
    return own_launched(launch_embedding_grad(&embedding, args->in[0], args->in[1], args->out[0],
                                              own->device->compute),
                        err);
}

static int positional_embedding_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct shape *x = &own->node->in[0]->shape;
    return own_launched(launch_add_position(args->in[0], args->in[1], args->out[0], shape_count(x),
                                            x->dim[1] * x->dim[2], own->device->compute),
                        err);
}

/* Rows behind the last step have no gradient. */
static int positional_embedding_weight_grad_run(void *state, const struct kernel_args *args,
                                                struct err *err)
{
    const struct own *own = state;
    const struct shape *gy = &own->node->in[0]->shape;
    int64_t size = gy->dim[1] * gy->dim[2];
    int64_t rest = shape_count(&own->node->out[0]->shape) - size;
    float *gw = args->out[0];
    int rc = own_launched(
        launch_sum_samples(args->in[0], gw, gy->dim[0], size, own->device->compute), err);
    return rc || rest == 0 ? rc
                           : own_launched(cudaMemsetAsync(gw + size, 0, (size_t)rest * sizeof *gw,
                                                          own->device->compute),
                                          err);
}

static struct last_launch last_of(const struct value *x)
{
    const struct shape *shape = &x->shape;
    return (struct last_launch){shape->dim[0], shape->dim[1],
                                shape_count(shape) / shape->dim[0] / shape->dim[1]};
}

static const int64_t *lengths_of(const struct own *own, const struct kernel_args *args)
{
    return own_in(own->node, 1) ? args->in[1] : NULL;
}

static int select_last_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct value *x = own->node->in[0];
    const struct last_launch last = last_of(x);
    return own_launched(launch_select_last(dtype_size(x->dtype), &last, lengths_of(own, args),
                                           args->in[0], args->out[0], own->device->step,
                                           own->device->fault, own->device->compute),
                        err);
}

static int select_last_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct value *x = own->node->out[0];
    const struct last_launch last = last_of(x);
    return own_launched(launch_select_last_grad(dtype_size(x->dtype), &last, lengths_of(own, args),
                                                args->in[0], args->out[0], own->device->compute),
                        err);
}

#define ROW(name)                                                                                  \
    const struct kernel kernel_##name = {#name, own_query_plain, own_create, name##_run,           \
                                         own_destroy}

ROW(embedding);
ROW(embedding_weight_grad);
ROW(positional_embedding);
ROW(positional_embedding_weight_grad);
ROW(select_last);
ROW(select_last_grad);
