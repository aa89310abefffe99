/* dropout.c: dropout and its gradient, which is the same map: torch.nn.Dropout in training. Nothing
 * is stored: the mask is that of the CPU, element for element. */
#include <math.h>

#include "engine/backend/cuda/own.h"
#include "engine/base/rng.h"
#include "engine/ops/attr.h"

static int dropout_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct dropout_attr *attr = own->node->attr;
    const struct shape *shape = &own->node->in[0]->shape;
    const struct layout *layout = own->choice->in[0];
    struct rng_key layer = rng_key(args->step->seed, RNG_DROPOUT, (uint64_t)attr->layer);
    const struct dropout_launch dropout = {
        .layer_key = {layer.word[0], layer.word[1]},
        .threshold = (uint32_t)ceil(attr->p * 0x1p24),
        .factor = attr->p < 1 ? (float)(1 / (1 - attr->p)) : 0,
        .samples = shape->dim[0],
        .count = shape_count(shape) / shape->dim[0],
        .channels = layout->channels_last ? shape->dim[1] : 0,
    };
    return own_launched(launch_dropout(own_is_bf16(layout), args->in[0], args->out[0], &dropout,
                                       own->device->step, own->device->compute),
                        err);
}

const struct kernel kernel_dropout = {"dropout", own_query_elementwise, own_create, dropout_run,
                                      own_destroy};
const struct kernel kernel_dropout_grad = {"dropout_grad", own_query_elementwise, own_create,
                                           dropout_run, own_destroy};
