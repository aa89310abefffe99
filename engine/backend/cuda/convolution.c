/* convolution.c: see convolution.h. */
#include "engine/backend/cuda/convolution.h"

#define CONVOLUTION_TRY(call)                                                                      \
    do {                                                                                           \
        int try_rc = status_cudnn((call), "a convolution", err);                                   \
        if (try_rc)                                                                                \
            return try_rc;                                                                         \
    } while (0)

static int64_t bytes_of(const struct shape *shape, enum dtype dtype)
{
    return shape_count(shape) * (int64_t)dtype_size(dtype);
}

/* Room for an image that is unfolded, and for batches that are transformed, within bounds. */
size_t convolution_workspace(const struct convolution_shape *shape)
{
    const int64_t least = 1 << 20, most = 256 << 20;
    int64_t images = bytes_of(&shape->x, DTYPE_F32) + bytes_of(&shape->y, DTYPE_F32);
    int64_t wish = 4 * (images + bytes_of(&shape->w, DTYPE_F32)) + 16 * images / shape->x.dim[0];
    return (size_t)(wish < least ? least : wish > most ? most : wish);
}

static cudnnDataType_t data_type(const struct convolution_shape *shape)
{
    return shape->dtype == DTYPE_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

static int tensor_init(cudnnTensorDescriptor_t *ret_tensor, const struct convolution_shape *shape,
                       const struct shape *of, struct err *err)
{
    CONVOLUTION_TRY(cudnnCreateTensorDescriptor(ret_tensor));
    CONVOLUTION_TRY(cudnnSetTensor4dDescriptor(
        *ret_tensor, shape->channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, data_type(shape),
        (int)of->dim[0], (int)of->dim[1], (int)of->dim[2], (int)of->dim[3]));
    return 0;
}

static int filter_init(cudnnFilterDescriptor_t *ret_filter, const struct convolution_shape *shape,
                       struct err *err)
{
    const struct shape *w = &shape->w;
    CONVOLUTION_TRY(cudnnCreateFilterDescriptor(ret_filter));
    CONVOLUTION_TRY(cudnnSetFilter4dDescriptor(
        *ret_filter, data_type(shape), shape->channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
        (int)w->dim[0], (int)w->dim[1], (int)w->dim[2], (int)w->dim[3]));
    return 0;
}

/* Floats are multiplied as floats; BF16 by tensor cores. */
static int desc_init(cudnnConvolutionDescriptor_t *ret_desc, const struct convolution_shape *shape,
                     struct err *err)
{
    const int64_t *padding = shape->padding, *stride = shape->stride, *dilation = shape->dilation;
    CONVOLUTION_TRY(cudnnCreateConvolutionDescriptor(ret_desc));
    CONVOLUTION_TRY(cudnnSetConvolution2dDescriptor(
        *ret_desc, (int)padding[0], (int)padding[1], (int)stride[0], (int)stride[1],
        (int)dilation[0], (int)dilation[1], CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CONVOLUTION_TRY(cudnnSetConvolutionGroupCount(*ret_desc, (int)shape->groups));
    CONVOLUTION_TRY(cudnnSetConvolutionMathType(
        *ret_desc, shape->dtype == DTYPE_BF16 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH));
    return 0;
}

enum { MAX_RESULTS = 16 };

/* Takes the first result, of cuDNN's order by expected speed, that adds in one order and fits. */
#define CHOOSE(name, perf, call, first, second, third)                                             \
    static int choose_##name(struct convolution *c, size_t limit, struct err *err)                 \
    {                                                                                              \
        perf results[MAX_RESULTS];                                                                 \
        int n = 0;                                                                                 \
        CONVOLUTION_TRY(                                                                           \
            call(c->device->cudnn, first, second, c->desc, third, MAX_RESULTS, &n, results));      \
        for (int i = 0; i < n; i++) {                                                              \
            if (results[i].status != CUDNN_STATUS_SUCCESS || results[i].memory > limit ||          \
                results[i].determinism != CUDNN_DETERMINISTIC)                                     \
                continue;                                                                          \
            c->algorithm = (int)results[i].algo;                                                   \
            c->workspace_bytes = results[i].memory;                                                \
            return 0;                                                                              \
        }                                                                                          \
        return err_set(err, ERR_DEVICE_FAILED,                                                     \
                       "cuDNN has no deterministic algorithm for it within %zu bytes of "          \
                       "workspace",                                                                \
                       limit);                                                                     \
    }

CHOOSE(forward, cudnnConvolutionFwdAlgoPerf_t, cudnnGetConvolutionForwardAlgorithm_v7, c->x, c->w,
       c->y)
CHOOSE(input_grad, cudnnConvolutionBwdDataAlgoPerf_t, cudnnGetConvolutionBackwardDataAlgorithm_v7,
       c->w, c->y, c->x)
CHOOSE(weight_grad, cudnnConvolutionBwdFilterAlgoPerf_t,
       cudnnGetConvolutionBackwardFilterAlgorithm_v7, c->x, c->y, c->w)

static int run_forward(const struct convolution *c, const struct convolution_memory *m,
                       const float *one, const float *zero, struct err *err)
{
    CONVOLUTION_TRY(cudnnConvolutionForward(c->device->cudnn, one, c->x, m->x, c->w, m->w, c->desc,
                                            (cudnnConvolutionFwdAlgo_t)c->algorithm, m->workspace,
                                            c->workspace_bytes, zero, c->y, m->y));
    return 0;
}

static int run_input_grad(const struct convolution *c, const struct convolution_memory *m,
                          const float *one, const float *zero, struct err *err)
{
    CONVOLUTION_TRY(
        cudnnConvolutionBackwardData(c->device->cudnn, one, c->w, m->w, c->y, m->y, c->desc,
                                     (cudnnConvolutionBwdDataAlgo_t)c->algorithm, m->workspace,
                                     c->workspace_bytes, zero, c->x, m->x));
    return 0;
}

static int run_weight_grad(const struct convolution *c, const struct convolution_memory *m,
                           const float *one, const float *zero, struct err *err)
{
    CONVOLUTION_TRY(
        cudnnConvolutionBackwardFilter(c->device->cudnn, one, c->x, m->x, c->y, m->y, c->desc,
                                       (cudnnConvolutionBwdFilterAlgo_t)c->algorithm, m->workspace,
                                       c->workspace_bytes, zero, c->w, m->w));
    return 0;
}

static const struct {
    int (*choose)(struct convolution *c, size_t limit, struct err *err);
    int (*run)(const struct convolution *c, const struct convolution_memory *m, const float *one,
               const float *zero, struct err *err);
} directions[] = {
    [DIRECTION_FORWARD] = {choose_forward, run_forward},
    [DIRECTION_INPUT_GRAD] = {choose_input_grad, run_input_grad},
    [DIRECTION_WEIGHT_GRAD] = {choose_weight_grad, run_weight_grad},
};

int convolution_init(struct convolution *convolution, struct device *device,
                     enum direction direction, const struct convolution_shape *shape,
                     struct err *err)
{
    *convolution = (struct convolution){.device = device, .direction = direction};
    int rc = tensor_init(&convolution->x, shape, &shape->x, err);
    if (rc == 0)
        rc = tensor_init(&convolution->y, shape, &shape->y, err);
    if (rc == 0)
        rc = filter_init(&convolution->w, shape, err);
    if (rc == 0)
        rc = desc_init(&convolution->desc, shape, err);
    return rc ? rc : directions[direction].choose(convolution, convolution_workspace(shape), err);
}

void convolution_done(struct convolution *convolution)
{
    if (convolution->desc)
        cudnnDestroyConvolutionDescriptor(convolution->desc);
    if (convolution->w)
        cudnnDestroyFilterDescriptor(convolution->w);
    if (convolution->y)
        cudnnDestroyTensorDescriptor(convolution->y);
    if (convolution->x)
        cudnnDestroyTensorDescriptor(convolution->x);
}

int convolution_run(const struct convolution *convolution, const struct convolution_memory *memory,
                    struct err *err)
{
    const float one = 1, zero = 0;
    return directions[convolution->direction].run(convolution, memory, &one, &zero, err);
}
