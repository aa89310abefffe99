/* batch_norm.c: torch.nn.BatchNorm1d and 2d, in training and evaluation, alone or with a residual
 * and a ReLU behind it, and in the parts of a batch that several replicas have. x and what has its
 * shape lie as x comes. The saved spread is the variance. */
#include "engine/backend/cuda/channels.h"
#include "engine/backend/cuda/own.h"
#include "engine/ops/attr.h"

/* The input, or NULL where it is absent. */
static void *given(const struct node *node, const struct kernel_args *args, int i)
{
    return own_in(node, i) ? args->in[i] : NULL;
}

static void *wanted(const struct node *node, const struct kernel_args *args, int i)
{
    return own_out(node, i) ? args->out[i] : NULL;
}

static double eps_of(const struct node *node)
{
    const struct batch_norm_attr *attr = node->attr;
    return attr->eps;
}

static struct image image_of(const struct own *own)
{
    return own_image(own->choice->in[0]);
}

static bool is_bf16(const struct own *own)
{
    return own_is_bf16(own->choice->in[0]);
}

/* Doubles for sums, then floats [2, C] for what comes of them. */
static size_t scratch_bytes(const struct layout *x)
{
    const struct image image = own_image(x);
    return (size_t)channel_scratch(&image) * sizeof(double) +
           2 * (size_t)image.channels * sizeof(float);
}

static float *scratch_sums(const struct image *image, const struct kernel_args *args)
{
    return (float *)((double *)args->scratch + channel_scratch(image));
}

/* What has x's shape lies as x; the rest is plain. */
static int batch_norm_query(const struct node *node, const struct layout *const *in,
                            struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    const struct value *x = node->in[0];
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && shape_equal(&node->in[i]->shape, &x->shape))
            ret_choice->in[i] = in[0];
    for (int i = 0; i < node->n_out; i++)
        if (node->out[i] && shape_equal(&node->out[i]->shape, &x->shape))
            ret_choice->out[i] = in[0];
    ret_choice->scratch_bytes = scratch_bytes(in[0]);
    return 0;
}

enum { X, WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR, TRACKED, RESIDUAL }; /* inputs */
enum { Y, MEAN, SPREAD };                                               /* outputs */

static int normalize(const struct own *own, const struct kernel_args *args, const float *mean,
                     const float *variance, int residual, bool relu, struct err *err)
{
    const struct node *node = own->node;
    const struct image image = image_of(own);
    const struct normalize_launch launch = {
        .x = args->in[X],
        .residual = given(node, args, residual),
        .w = given(node, args, WEIGHT),
        .b = given(node, args, BIAS),
        .mean = mean,
        .variance = variance,
        .eps = eps_of(node),
        .relu = relu,
        .y = args->out[Y],
    };
    return own_launched(launch_normalize(is_bf16(own), &image, &launch, own->device->compute), err);
}

static int train(const struct own *own, const struct kernel_args *args, bool relu, struct err *err)
{
    const struct node *node = own->node;
    const struct batch_norm_attr *attr = node->attr;
    const struct image image = image_of(own);
    cudaStream_t stream = own->device->compute;
    float *mean = args->out[MEAN], *variance = args->out[SPREAD];
    int rc = own_launched(launch_moments(is_bf16(own), &image, args->in[X], false, mean, variance,
                                         args->scratch, stream),
                          err);
    if (rc == 0 && own_in(node, RUNNING_MEAN))
        rc = own_launched(launch_track(image.channels,
                                       (double)(image.samples * image.height * image.width), NULL,
                                       mean, variance, attr->momentum, args->in[RUNNING_MEAN],
                                       args->in[RUNNING_VAR], given(node, args, TRACKED), stream),
                          err);
    return rc ? rc : normalize(own, args, mean, variance, RESIDUAL, relu, err);
}

static int batch_norm_run(void *state, const struct kernel_args *args, struct err *err)
{
    return train(state, args, false, err);
}

static int batch_norm_relu_run(void *state, const struct kernel_args *args, struct err *err)
{
    return train(state, args, true, err);
}

static int batch_norm_eval_run(void *state, const struct kernel_args *args, struct err *err)
{
    return normalize(state, args, args->in[3], args->in[4], 5, false, err);
}

static int batch_norm_relu_eval_run(void *state, const struct kernel_args *args, struct err *err)
{
    return normalize(state, args, args->in[3], args->in[4], 5, true, err);
}

/* A parameter's gradient of the sums' row. */
static int leave(const struct own *own, const float *row, float *to, struct err *err)
{
    size_t bytes = (size_t)image_of(own).channels * sizeof *row;
    return to ? own_launched(
                    cudaMemcpyAsync(to, row, bytes, cudaMemcpyDeviceToDevice, own->device->compute),
                    err)
              : 0;
}

static int leave_parameters(const struct own *own, const struct kernel_args *args,
                            const float *sums, struct err *err)
{
    int rc = leave(own, sums + image_of(own).channels, wanted(own->node, args, 1), err);
    return rc ? rc : leave(own, sums, wanted(own->node, args, 2), err);
}

/* Both passes, of a whole batch. */
static int grad(const struct own *own, const struct kernel_args *args,
                struct normalize_grad_launch *launch, struct err *err)
{
    const struct image image = image_of(own);
    cudaStream_t stream = own->device->compute;
    float *sums = scratch_sums(&image, args);
    launch->sums = sums;
    int rc = own_launched(
        launch_normalize_sums(is_bf16(own), &image, launch, sums, args->scratch, stream), err);
    if (rc == 0)
        rc = own_launched(launch_normalize_grad(is_bf16(own), &image, launch, stream), err);
    return rc ? rc : leave_parameters(own, args, sums, err);
}

static int batch_norm_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    struct normalize_grad_launch launch = {
        .x = args->in[0],
        .gy = args->in[1],
        .w = given(own->node, args, 2),
        .mean = args->in[3],
        .variance = args->in[4],
        .eps = eps_of(own->node),
        .gx = args->out[0],
    };
    return grad(own, args, &launch, err);
}

static int batch_norm_relu_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    struct normalize_grad_launch launch = {
        .x = args->in[0],
        .gy = args->in[1],
        .w = given(own->node, args, 2),
        .b = given(own->node, args, 3),
        .mean = args->in[4],
        .variance = args->in[5],
        .y = given(own->node, args, 6),
        .eps = eps_of(own->node),
        .relu = true,
        .gx = args->out[0],
        .gresidual = wanted(own->node, args, 3),
    };
    return grad(own, args, &launch, err);
}

/* How many values a channel has here, their mean, their squared deviations. */
static int batch_norm_statistics_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct image image = image_of(own);
    cudaStream_t stream = own->device->compute;
    float *count = args->out[0], *mean = count + 1, *squares = mean + image.channels;
    int rc = own_launched(
        launch_set_float(count, (float)(image.samples * image.height * image.width), stream), err);
    return rc ? rc
              : own_launched(launch_moments(is_bf16(own), &image, args->in[0], true, mean, squares,
                                            args->scratch, stream),
                             err);
}

static int batch_norm_combine_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct node *node = own->node;
    const struct batch_norm_attr *attr = node->attr;
    const struct shape *shape = &node->in[0]->shape;
    int64_t channels = (shape->dim[1] - 1) / 2;
    float *mean = args->out[0], *variance = args->out[1], *count = args->out[2];
    int rc = own_launched(launch_combine(args->in[0], shape->dim[0], channels, mean, variance,
                                         count, own->device->compute),
                          err);
    if (rc || !own_in(node, 1))
        return rc;
    return own_launched(launch_track(channels, 0, count, mean, variance, attr->momentum,
                                     args->in[1], args->in[2], given(node, args, 3),
                                     own->device->compute),
                        err);
}

static int batch_norm_sums_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct image image = image_of(own);
    const struct normalize_grad_launch launch = {
        .x = args->in[0],
        .gy = args->in[1],
        .mean = args->in[2],
        .variance = args->in[3],
        .eps = eps_of(own->node),
    };
    int rc = own_launched(launch_normalize_sums(is_bf16(own), &image, &launch, args->out[0],
                                                args->scratch, own->device->compute),
                          err);
    return rc ? rc : leave_parameters(own, args, args->out[0], err);
}

static int batch_norm_sums_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct image image = image_of(own);
    const struct normalize_grad_launch launch = {
        .x = args->in[0],
        .gy = args->in[1],
        .w = given(own->node, args, 2),
        .mean = args->in[3],
        .variance = args->in[4],
        .eps = eps_of(own->node),
        .sums = args->in[5],
        .count = args->in[6],
        .gx = args->out[0],
    };
    return own_launched(launch_normalize_grad(is_bf16(own), &image, &launch, own->device->compute),
                        err);
}

#define ROW(name, query)                                                                           \
    const struct kernel kernel_##name = {#name, query, own_create, name##_run, own_destroy}

ROW(batch_norm, batch_norm_query);
ROW(batch_norm_eval, batch_norm_query);
ROW(batch_norm_grad, batch_norm_query);
ROW(batch_norm_relu, batch_norm_query);
ROW(batch_norm_relu_eval, batch_norm_query);
ROW(batch_norm_relu_grad, batch_norm_query);
ROW(batch_norm_statistics, batch_norm_query);
ROW(batch_norm_sums, batch_norm_query);
ROW(batch_norm_sums_grad, batch_norm_query);
ROW(batch_norm_combine, own_query_plain);
