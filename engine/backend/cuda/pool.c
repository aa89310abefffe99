/* pool.c: max_pool2d, avg_pool2d, adaptive_avg_pool2d and their gradients: torch.nn.MaxPool2d,
 * AvgPool2d, AdaptiveAvgPool2d: in the layout in which the input comes. */
#include "engine/backend/cuda/pool.h"
#include "engine/backend/cuda/own.h"
#include "engine/ops/attr.h"

/* x and y of a node, as they lie, with windows still to be set. */
static struct pool_launch pool_of(const struct layout *x, const struct layout *y)
{
    return (struct pool_launch){
        .x = own_image(x),
        .y = own_image(y),
        .dilation = {1, 1},
    };
}

static struct pool_launch max_pool_of(const struct own *own, const struct layout *x,
                                      const struct layout *y)
{
    const struct max_pool2d_attr *attr = own->node->attr;
    struct pool_launch pool = pool_of(x, y);
    for (int i = 0; i < 2; i++) {
        pool.kernel[i] = attr->kernel_size[i];
        pool.stride[i] = attr->stride[i];
        pool.padding[i] = attr->padding[i];
        pool.dilation[i] = attr->dilation[i];
    }
    return pool;
}

static struct pool_launch avg_pool_of(const struct own *own, const struct layout *x,
                                      const struct layout *y)
{
    const struct avg_pool2d_attr *attr = own->node->attr;
    struct pool_launch pool = pool_of(x, y);
    for (int i = 0; i < 2; i++) {
        pool.kernel[i] = attr->kernel_size[i];
        pool.stride[i] = attr->stride[i];
        pool.padding[i] = attr->padding[i];
    }
    pool.count_include_pad = attr->count_include_pad;
    pool.divisor_override = attr->divisor_override;
    return pool;
}

static int max_pool2d_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct layout *x = own->choice->in[0], *y = own->choice->out[0];
    const struct pool_launch pool = max_pool_of(own, x, y);
    return own_launched(launch_max_pool(own_is_bf16(x), &pool, args->in[0], args->out[0],
                                        own_out(own->node, 1) ? args->out[1] : NULL,
                                        own->device->compute),
                        err);
}

static int max_pool2d_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct layout *x = own->choice->out[0], *y = own->choice->in[0];
    const struct pool_launch pool = max_pool_of(own, x, y);
    return own_launched(launch_max_pool_grad(own_is_bf16(x), &pool, args->in[0], args->in[1],
                                             args->out[0], own->device->compute),
                        err);
}

static int avg_pool2d_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct layout *x = own->choice->in[0], *y = own->choice->out[0];
    const struct pool_launch pool = avg_pool_of(own, x, y);
    return own_launched(
        launch_avg_pool(own_is_bf16(x), &pool, args->in[0], args->out[0], own->device->compute),
        err);
}

static int avg_pool2d_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct layout *x = own->choice->out[0], *y = own->choice->in[0];
    const struct pool_launch pool = avg_pool_of(own, x, y);
    return own_launched(launch_avg_pool_grad(own_is_bf16(x), &pool, args->in[0], args->out[0],
                                             own->device->compute),
                        err);
}

static int adaptive_avg_pool2d_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct layout *x = own->choice->in[0], *y = own->choice->out[0];
    const struct pool_launch pool = pool_of(x, y);
    return own_launched(launch_adaptive_pool(own_is_bf16(x), &pool, args->in[0], args->out[0],
                                             own->device->compute),
                        err);
}

static int adaptive_avg_pool2d_grad_run(void *state, const struct kernel_args *args,
                                        struct err *err)
{
    const struct own *own = state;
    const struct layout *x = own->choice->out[0], *y = own->choice->in[0];
    const struct pool_launch pool = pool_of(x, y);
    return own_launched(launch_adaptive_pool_grad(own_is_bf16(x), &pool, args->in[0], args->out[0],
                                                  own->device->compute),
                        err);
}

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
}

/* The output lies as the input comes. */
static int pool_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                      struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    ret_choice->in[0] = in[0];
    ret_choice->out[0] =
        cuda_layout_image(arena, &node->out[0]->shape, in[0]->dtype, in[0]->channels_last);
    return ret_choice->out[0] ? 0 : nomem(err);
}

/* The workspace lies as the output. */
static int max_pool2d_query(const struct node *node, const struct layout *const *in,
                            struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    const int64_t *size = node->in[0]->shape.dim + 2;
    if (size[0] * size[1] > INT32_MAX)
        return err_set(err, ERR_DEVICE_FAILED,
                       "a plane of %lld x %lld is more than the 2^31 pixels that it can tell apart",
                       (long long)size[0], (long long)size[1]);
    int rc = pool_query(node, in, arena, ret_choice, err);
    if (rc || !own_out(node, 1))
        return rc;
    ret_choice->out[1] =
        cuda_layout_private(arena, &node->out[0]->shape, sizeof(int32_t), in[0]->channels_last);
    return ret_choice->out[1] ? 0 : nomem(err);
}

/* As the forward lay, which the workspace tells. */
static int max_pool2d_grad_query(const struct node *node, const struct layout *const *in,
                                 struct arena *arena, struct kernel_choice *ret_choice,
                                 struct err *err)
{
    const struct layout *gy =
        cuda_layout_image(arena, &node->in[0]->shape, node->in[0]->dtype, in[1]->channels_last);
    const struct layout *both[NODE_MAX_IN] = {gy, in[1]};
    if (!gy)
        return nomem(err);
    int rc = pool_query(node, both, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->in[1] = in[1];
    return rc;
}

#define ROW(name, query)                                                                           \
    const struct kernel kernel_##name = {#name, query, own_create, name##_run, own_destroy}

ROW(max_pool2d, max_pool2d_query);
ROW(max_pool2d_grad, max_pool2d_grad_query);
ROW(avg_pool2d, pool_query);
ROW(avg_pool2d_grad, pool_query);
ROW(adaptive_avg_pool2d, pool_query);
ROW(adaptive_avg_pool2d_grad, pool_query);
