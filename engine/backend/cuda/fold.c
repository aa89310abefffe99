/* fold.c: add and mul: two or more tensors of one shape, element by element, from left to right. In
 * BF16 each result is rounded, as PyTorch's. */
#include "engine/backend/cuda/own.h"

static int fold_run(const struct own *own, const struct kernel_args *args, bool multiply,
                    struct err *err)
{
    const struct layout *layout = own->choice->out[0];
    return own_launched(launch_fold(multiply, own_is_bf16(layout), (const void *const *)args->in,
                                    own->node->n_in, args->out[0], own_count(layout),
                                    own->device->compute),
                        err);
}

static int add_run(void *state, const struct kernel_args *args, struct err *err)
{
    return fold_run(state, args, false, err);
}

static int mul_run(void *state, const struct kernel_args *args, struct err *err)
{
    return fold_run(state, args, true, err);
}

const struct kernel kernel_add = {"add", own_query_elementwise, own_create, add_run, own_destroy};
const struct kernel kernel_mul = {"mul", own_query_elementwise, own_create, mul_run, own_destroy};
