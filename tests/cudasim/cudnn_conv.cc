/* cudnn_conv.cc: convolution: its descriptor, its three directions, its bias. */
#include <cinttypes>

#include "tests/cudasim/cudnn_conv.hpp"

namespace sim
{

static int64_t output_size(const cudnnConvolutionStruct &conv, int i, int64_t size, int64_t filter)
{
    int64_t reach = (filter - 1) * conv.dilation[i] + 1, room = size + 2 * conv.pad[i] - reach;
    return room < 0 ? 0 : room / conv.stride[i] + 1;
}

/* The dims that y must have; refuses channels that do not fit, and filters larger than the input.
 */
static cudnnStatus_t output_dims(const char *call, const cudnnConvolutionStruct &conv,
                                 const View &x, const View &w, int64_t dim[4])
{
    REFUSE_IF(x.rank != 4 || w.rank != 4, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
              "%s: x has %d dimensions, the filter %d; 4 are simulated", call, x.rank, w.rank);
    REFUSE_IF(x.dim[1] != w.dim[1] * conv.groups || w.dim[0] % conv.groups != 0,
              CUDNN_STATUS_BAD_PARAM, "%s: x %s and a filter %s in %d groups", call,
              cudnn_dims(x).c_str(), cudnn_dims(w).c_str(), conv.groups);
    dim[0] = x.dim[0], dim[1] = w.dim[0];
    for (int i = 0; i < 2; i++) {
        dim[2 + i] = output_size(conv, i, x.dim[2 + i], w.dim[2 + i]);
        REFUSE_IF(dim[2 + i] == 0, CUDNN_STATUS_BAD_PARAM, "%s: a filter %s on x %s gives nothing",
                  call, cudnn_dims(w).c_str(), cudnn_dims(x).c_str());
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_types(const char *call, const ConvDescriptors &d)
{
    Type type = d.x->type;
    REFUSE_IF(d.w->view.type != type || d.y->type != type, CUDNN_STATUS_BAD_PARAM,
              "%s: x is %s, the filter %s, y %s", call, type_name(type), type_name(d.w->view.type),
              type_name(d.y->type));
    REFUSE_IF(type != Type::f32 && type != Type::bf16, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
              "%s: data of %s (or not simulated)", call, type_name(type));
    REFUSE_IF(d.conv->compute != CUDNN_DATA_FLOAT, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
              "%s: data of %s are computed in float", call, type_name(type));
    REFUSE_IF(d.conv->mode != CUDNN_CROSS_CORRELATION, CUDNN_STATUS_NOT_SUPPORTED,
              "%s: only cross-correlation is simulated", call);
    bool nhwc = d.w->format == CUDNN_TENSOR_NHWC;
    REFUSE_IF(nhwc && (!cudnn_is_nhwc(*d.x) || !cudnn_is_nhwc(*d.y)),
              CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "%s: an NHWC filter needs x and y packed in NHWC",
              call);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t conv_describe(const char *call, const ConvDescriptors &d, Conv *ret_conv)
{
    REFUSE_IF(!d.x || !d.w || !d.conv || !d.y, CUDNN_STATUS_BAD_PARAM, "%s: a descriptor is NULL",
              call);
    REFUSE_IF(d.x->rank == 0 || d.w->view.rank == 0 || d.y->rank == 0 || d.conv->stride[0] == 0,
              CUDNN_STATUS_BAD_PARAM, "%s: a descriptor was never set", call);
    REFUSED(check_types(call, d));
    int64_t dim[4];
    REFUSED(output_dims(call, *d.conv, *d.x, d.w->view, dim));
    for (int i = 0; i < 4; i++)
        REFUSE_IF(d.y->rank != 4 || d.y->dim[i] != dim[i], CUDNN_STATUS_BAD_PARAM,
                  "%s: y is %s, the convolution gives [%" PRId64 ", %" PRId64 ", %" PRId64
                  ", %" PRId64 "]",
                  call, cudnn_dims(*d.y).c_str(), dim[0], dim[1], dim[2], dim[3]);
    const View &x = *d.x, &w = d.w->view;
    *ret_conv = {x.dim[0], x.dim[1], x.dim[2],       x.dim[3], w.dim[0], w.dim[2], w.dim[3],
                 dim[2],   dim[3],   d.conv->groups, {},       {},       {}};
    for (int i = 0; i < 2; i++) {
        ret_conv->pad[i] = d.conv->pad[i];
        ret_conv->stride[i] = d.conv->stride[i];
        ret_conv->dilation[i] = d.conv->dilation[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

enum Operand { X, W, Y };

static const struct {
    Operand first, second, out;
    doubles (*loops)(const Conv &conv, const doubles &first, const doubles &second);
} directions[] = {
    {X, W, Y, conv_forward},
    {W, Y, X, conv_backward_data},
    {X, Y, W, conv_backward_filter},
};

/* The algorithm is one for these descriptors, and has the workspace that it needs. */
static cudnnStatus_t check_algo(const char *call, const ConvAlgo *row, const Conv &conv,
                                const void *workspace, size_t bytes, size_t *ret_needed)
{
    REFUSE_IF(!row, CUDNN_STATUS_NOT_SUPPORTED, "%s: the algorithm does not do this", call);
    size_t needed = row->workspace_bytes(conv);
    REFUSE_IF(bytes < needed || (needed && !workspace), CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
              "%s: a workspace of %zu bytes, needs %zu", call, bytes, needed);
    REFUSE_IF(needed && !aligned(workspace, 16), CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
              "%s: the workspace is not aligned to 16 bytes", call);
    *ret_needed = needed;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t conv_launch(cudnnHandle_t handle, const char *call, Direction direction,
                          const ConvDescriptors &d, int algo, const ConvPointers &p)
{
    Conv conv;
    REFUSED(conv_describe(call, d, &conv));
    const View *views[] = {d.x, &d.w->view, d.y};
    const void *data[] = {p.x, p.w, p.y};
    auto role = directions[int(direction)];
    REFUSED(cudnn_check(handle, call,
                        {{"x", d.x, p.x}, {"the filter", views[W], p.w}, {"y", d.y, p.y}}));
    REFUSE_IF(!p.alpha || !p.beta, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no alpha or beta",
              call);
    size_t needed = 0;
    const ConvAlgo *row = conv_algo_find(direction, d, algo);
    REFUSED(check_algo(call, row, conv, p.workspace, p.workspace_bytes, &needed));

    View first = *views[role.first], second = *views[role.second], out = *views[role.out];
    double factor = cudnn_scalar(out, p.alpha), old = cudnn_scalar(out, p.beta);
    bool deterministic = row->deterministic;
    Launch launch(call, handle->stream);
    launch.in(data[role.first], first);
    launch.in(data[role.second], second);
    launch.out(const_cast<void *>(data[role.out]), out, old != 0);
    launch.scratch(p.workspace, needed);
    launch.allow(Launch::Overlap::none);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles values =
            role.loops(conv, view_load(first, memory[0]), view_load(second, memory[1]));
        if (!deterministic)
            unsettle(&values);
        view_store(out, memory[2], values, factor, old);
    }),
                          call);
}

/* [1, k, 1, 1] */
static bool is_channel_vector(const View &view, int64_t channels)
{
    return view.rank >= 2 && view.dim[1] == channels && view_count(view) == channels;
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *descriptor)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "cudnnCreateConvolutionDescriptor: NULL");
    *descriptor = new cudnnConvolutionStruct{};
    (*descriptor)->groups = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor)
{
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t descriptor, int length,
                                              const int pad[], const int stride[],
                                              const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute)
{
    REFUSE_IF(!descriptor || !pad || !stride || !dilation, CUDNN_STATUS_BAD_PARAM,
              "cudnnSetConvolutionNdDescriptor: NULL");
    REFUSE_IF(length != 2, CUDNN_STATUS_NOT_SUPPORTED, "%d spatial dimensions; 2 are simulated",
              length);
    REFUSE_IF(unsigned(mode) > CUDNN_CROSS_CORRELATION, CUDNN_STATUS_BAD_PARAM, "no such mode");
    REFUSE_IF(compute != CUDNN_DATA_FLOAT && compute != CUDNN_DATA_DOUBLE &&
                  compute != CUDNN_DATA_HALF,
              CUDNN_STATUS_BAD_PARAM, "no such compute type");
    for (int i = 0; i < 2; i++)
        REFUSE_IF(pad[i] < 0 || stride[i] <= 0 || dilation[i] <= 0, CUDNN_STATUS_BAD_PARAM,
                  "padding %d, stride %d, dilation %d", pad[i], stride[i], dilation[i]);
    *descriptor = {{pad[0], pad[1]},
                   {stride[0], stride[1]},
                   {dilation[0], dilation[1]},
                   descriptor->groups,
                   mode,
                   compute,
                   descriptor->math};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int pad_h,
                                              int pad_w, int u, int v, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute)
{
    const int pad[] = {pad_h, pad_w}, stride[] = {u, v}, dilation[] = {dilation_h, dilation_w};
    return cudnnSetConvolutionNdDescriptor(descriptor, 2, pad, stride, dilation, mode, compute);
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t math)
{
    REFUSE_IF(!descriptor || unsigned(math) > CUDNN_FMA_MATH, CUDNN_STATUS_BAD_PARAM,
              "cudnnSetConvolutionMathType: no such type");
    descriptor->math = math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t *math)
{
    REFUSE_IF(!descriptor || !math, CUDNN_STATUS_BAD_PARAM, "cudnnGetConvolutionMathType: NULL");
    *math = descriptor->math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups)
{
    REFUSE_IF(!descriptor || groups < 1, CUDNN_STATUS_BAD_PARAM,
              "cudnnSetConvolutionGroupCount: %d groups", groups);
    descriptor->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int *groups)
{
    REFUSE_IF(!descriptor || !groups, CUDNN_STATUS_BAD_PARAM,
              "cudnnGetConvolutionGroupCount: NULL");
    *groups = descriptor->groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t descriptor,
                                                    const cudnnTensorDescriptor_t x_desc,
                                                    const cudnnFilterDescriptor_t w_desc, int rank,
                                                    int dim[])
{
    static const char call[] = "cudnnGetConvolutionNdForwardOutputDim";
    REFUSE_IF(!descriptor || !x_desc || !w_desc || rank != 4, CUDNN_STATUS_BAD_PARAM,
              "%s: NULL, or not 4 dimensions", call);
    int64_t wide[4];
    REFUSED(output_dims(call, *descriptor, x_desc->view, w_desc->view, wide));
    for (int i = 0; i < 4; i++)
        dim[i] = int(wide[i]);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t descriptor,
                                                    const cudnnTensorDescriptor_t x_desc,
                                                    const cudnnFilterDescriptor_t w_desc, int *n,
                                                    int *c, int *h, int *w)
{
    int dim[4];
    REFUSED(cudnnGetConvolutionNdForwardOutputDim(descriptor, x_desc, w_desc, 4, dim));
    *n = dim[0], *c = dim[1], *h = dim[2], *w = dim[3];
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t x_desc, const void *x,
                                      const cudnnFilterDescriptor_t w_desc, const void *w,
                                      const cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t bytes,
                                      const void *beta, const cudnnTensorDescriptor_t y_desc,
                                      void *y)
{
    return conv_launch(handle, "cudnnConvolutionForward", Direction::forward,
                       {cudnn_view(x_desc), w_desc, conv, cudnn_view(y_desc)}, algo,
                       {x, w, y, workspace, bytes, alpha, beta});
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void *w,
                                           const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                           const cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algo, void *workspace,
                                           size_t bytes, const void *beta,
                                           const cudnnTensorDescriptor_t dx_desc, void *dx)
{
    return conv_launch(handle, "cudnnConvolutionBackwardData", Direction::data,
                       {cudnn_view(dx_desc), w_desc, conv, cudnn_view(dy_desc)}, algo,
                       {dx, w, dy, workspace, bytes, alpha, beta});
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void *x,
                                             const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void *workspace,
                                             size_t bytes, const void *beta,
                                             const cudnnFilterDescriptor_t dw_desc, void *dw)
{
    return conv_launch(handle, "cudnnConvolutionBackwardFilter", Direction::filter,
                       {cudnn_view(x_desc), dw_desc, conv, cudnn_view(dy_desc)}, algo,
                       {x, dw, dy, workspace, bytes, alpha, beta});
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha,
                                           const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                           const void *beta, const cudnnTensorDescriptor_t db_desc,
                                           void *db)
{
    static const char call[] = "cudnnConvolutionBackwardBias";
    REFUSED(cudnn_check(handle, call,
                        {{"dy", cudnn_view(dy_desc), dy}, {"db", cudnn_view(db_desc), db}}));
    const View vdy = dy_desc->view, vdb = db_desc->view;
    REFUSE_IF(!alpha || !beta, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no alpha or beta", call);
    REFUSE_IF(!is_channel_vector(vdb, vdy.dim[1]) || vdb.type != vdy.type, CUDNN_STATUS_BAD_PARAM,
              "%s: dy is %s, db %s", call, cudnn_dims(vdy).c_str(), cudnn_dims(vdb).c_str());
    double factor = cudnn_scalar(vdb, alpha), old = cudnn_scalar(vdb, beta);
    Launch launch(call, handle->stream);
    launch.in(dy, vdy);
    launch.out(db, vdb, old != 0);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles grads = view_load(vdy, memory[0]), sums(size_t(vdy.dim[1]), 0.0);
        size_t pixels = grads.size() / size_t(vdy.dim[0] * vdy.dim[1]);
        for (size_t i = 0; i < grads.size(); i++)
            sums[i / pixels % sums.size()] += grads[i];
        view_store(vdb, memory[1], sums, factor, old);
    }),
                          call);
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t x_desc, const void *x,
    const cudnnFilterDescriptor_t w_desc, const void *w,
    const cudnnConvolutionDescriptor_t conv_desc, cudnnConvolutionFwdAlgo_t algo, void *workspace,
    size_t bytes, const void *alpha2, const cudnnTensorDescriptor_t z_desc, const void *z,
    const cudnnTensorDescriptor_t bias_desc, const void *bias,
    const cudnnActivationDescriptor_t activation_desc, const cudnnTensorDescriptor_t y_desc,
    void *y)
{
    static const char call[] = "cudnnConvolutionBiasActivationForward";
    ConvDescriptors d = {cudnn_view(x_desc), w_desc, conv_desc, cudnn_view(y_desc)};
    Conv conv;
    REFUSED(conv_describe(call, d, &conv));
    REFUSED(cudnn_check(handle, call,
                        {{"x", d.x, x},
                         {"the filter", cudnn_view(w_desc), w},
                         {"z", cudnn_view(z_desc), z},
                         {"the bias", cudnn_view(bias_desc), bias},
                         {"y", d.y, y}}));
    REFUSE_IF(!alpha1 || !alpha2 || !activation_desc, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
              "%s: no alpha1, alpha2 or activation", call);
    const View vx = *d.x, vw = w_desc->view, vz = z_desc->view, vb = bias_desc->view, vy = *d.y;
    REFUSE_IF(!view_same_dims(vz, vy) || vz.type != vy.type || (z == y && !view_same(vz, vy)),
              CUDNN_STATUS_BAD_PARAM, "%s: z is %s, y %s (or in place with other strides)", call,
              cudnn_dims(vz).c_str(), cudnn_dims(vy).c_str());
    REFUSE_IF(!is_channel_vector(vb, vy.dim[1]), CUDNN_STATUS_BAD_PARAM, "%s: a bias %s for y %s",
              call, cudnn_dims(vb).c_str(), cudnn_dims(vy).c_str());
    const cudnnActivationStruct activation = *activation_desc;
    bool identity = activation.mode == CUDNN_ACTIVATION_IDENTITY;
    REFUSE_IF(!identity && activation.mode != CUDNN_ACTIVATION_RELU, CUDNN_STATUS_NOT_SUPPORTED,
              "%s: only ReLU and identity", call);
    REFUSE_IF(identity && algo != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
              CUDNN_STATUS_NOT_SUPPORTED, "%s: identity goes with IMPLICIT_PRECOMP_GEMM alone",
              call);
    size_t needed = 0;
    REFUSED(check_algo(call, conv_algo_find(Direction::forward, d, algo), conv, workspace, bytes,
                       &needed));
    double factor = cudnn_scalar(vy, alpha1), factor_z = cudnn_scalar(vy, alpha2);
    Launch launch(call, handle->stream);
    launch.in(x, vx);
    launch.in(w, vw);
    launch.in(factor_z != 0 ? z : nullptr, vz);
    launch.in(bias, vb);
    launch.out(y, vy);
    launch.scratch(workspace, needed);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles values = conv_forward(conv, view_load(vx, memory[0]), view_load(vw, memory[1]));
        doubles added(values.size(), 0.0), biases = view_load(vb, memory[3]);
        if (memory[2])
            added = view_load(vz, memory[2]);
        for (size_t i = 0; i < values.size(); i++) {
            double b = biases[i / size_t(conv.p * conv.q) % biases.size()];
            double sum = factor * values[i] + factor_z * added[i] + b;
            values[i] = activation_forward(activation, sum);
        }
        view_store(vy, memory[4], values);
    }),
                          call);
}
