/* gradients.c: zero, all_reduce (and its start), scale, clip_grad_norm: a run of gradient variables
 * as one flat buffer. */
#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/reduce.h"
#include "engine/ops/attr.h"

/* From the first variable's begin to the last one's end; the variables between, and the gaps of
 * alignment, lie in it. */
static size_t flat_count(const struct own *own, const struct kernel_args *args)
{
    const float *first = args->in[0], *last = args->in[1];
    return (size_t)(last - first) + (size_t)shape_count(&own->node->in[1]->shape);
}

static int zero_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    return own_launched(cudaMemsetAsync(args->in[0], 0, flat_count(own, args) * sizeof(float),
                                        own->device->compute),
                        err);
}

static int all_reduce_start_run(void *state, const struct kernel_args *args, struct err *err)
{
    struct collective *collective = args->collective;
    if (!collective)
        return 0;
    return collective->reduce_start(collective, args->in[0], flat_count(state, args), err);
}

static int all_reduce_run(void *state, const struct kernel_args *args, struct err *err)
{
    int rc = all_reduce_start_run(state, args, err);
    return rc || !args->collective ? rc : args->collective->reduce_finish(args->collective, err);
}

static int scale_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    return own_launched(launch_scale(args->in[0], (int64_t)flat_count(own, args), own->device->step,
                                     own->device->compute),
                        err);
}

/* The squares of all stages: the host adds them, and waits for that. A stage without gradients has
 * its part in the sum all the same. */
static int sum_stages(const struct own *own, struct collective *stages, double *total,
                      struct err *err)
{
    double sum;
    int rc = cuda_read(own->device, &sum, total, sizeof sum, err);
    if (rc == 0)
        rc = stages->sum(stages, &sum, err);
    return rc == 0 ? cuda_write(own->device, total, &sum, sizeof sum, err) : rc;
}

static int clip_grad_norm_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct clip_grad_norm_attr *attr = own->node->attr;
    cudaStream_t stream = own->device->compute;
    double *parts = args->scratch, *total = parts + NORM_PARTS;
    int rc = own_launched(
        own_in(own->node, 0)
            ? launch_square_sum(args->in[0], (int64_t)flat_count(own, args), parts, total, stream)
            : cudaMemsetAsync(total, 0, sizeof *total, stream),
        err);
    if (rc == 0 && args->stages)
        rc = sum_stages(own, args->stages, total, err);
    return rc ? rc
              : own_launched(launch_clip_scale(total, attr->max_norm, args->out[0], stream), err);
}

static int clip_grad_norm_query(const struct node *node, const struct layout *const *in,
                                struct arena *arena, struct kernel_choice *ret_choice,
                                struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = (NORM_PARTS + 1) * sizeof(double);
    return rc;
}

const struct kernel kernel_clip_grad_norm = {"clip_grad_norm", clip_grad_norm_query, own_create,
                                             clip_grad_norm_run, own_destroy};
const struct kernel kernel_scale = {"scale", own_query_plain, own_create, scale_run, own_destroy};
const struct kernel kernel_zero = {"zero", own_query_plain, own_create, zero_run, own_destroy};
const struct kernel kernel_all_reduce_start = {"all_reduce_start", own_query_plain, own_create,
                                               all_reduce_start_run, own_destroy};
const struct kernel kernel_all_reduce = {"all_reduce", own_query_plain, own_create, all_reduce_run,
                                         own_destroy};
