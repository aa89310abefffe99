/* cudnn_pool.cc: pooling. */
#include <algorithm>

#include "tests/cudasim/cudnn.hpp"
#include "tests/cudasim/loops.hpp"

struct cudnnPoolingStruct {
    cudnnPoolingMode_t mode;
    cudnnNanPropagation_t nan;
    int window[2], pad[2], stride[2]; /* window 0: not set */
};

namespace sim
{

static const PoolMode pool_modes[] = {PoolMode::max, PoolMode::average_with_padding,
                                      PoolMode::average_without_padding, PoolMode::max};

static cudnnStatus_t output_dims(const char *call, const cudnnPoolingStruct &p, const View &x,
                                 int64_t dim[4])
{
    REFUSE_IF(x.rank != 4, CUDNN_STATUS_NOT_SUPPORTED, "%s: x has %d dimensions; 4 are simulated",
              call, x.rank);
    dim[0] = x.dim[0], dim[1] = x.dim[1];
    for (int i = 0; i < 2; i++) {
        int64_t room = x.dim[2 + i] + 2 * p.pad[i] - p.window[i];
        REFUSE_IF(room < 0, CUDNN_STATUS_BAD_PARAM, "%s: a window of %d on x %s", call, p.window[i],
                  cudnn_dims(x).c_str());
        dim[2 + i] = room / p.stride[i] + 1;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t describe(const char *call, const cudnnPoolingStruct *p, const View &x,
                              const View &y, Pool *ret_pool)
{
    REFUSE_IF(!p || p->window[0] == 0, CUDNN_STATUS_BAD_PARAM, "%s: no window", call);
    int64_t dim[4];
    REFUSED(output_dims(call, *p, x, dim));
    REFUSE_IF(y.rank != 4 || !std::equal(dim, dim + 4, y.dim) || x.type != y.type,
              CUDNN_STATUS_BAD_PARAM, "%s: x is %s, y %s", call, cudnn_dims(x).c_str(),
              cudnn_dims(y).c_str());
    for (int i = 0; i < 2; i++)
        REFUSE_IF(p->pad[i] < 0 || p->pad[i] >= p->window[i], CUDNN_STATUS_BAD_PARAM,
                  "%s: a padding of %d in a window of %d", call, p->pad[i], p->window[i]);
    *ret_pool = {pool_modes[p->mode],
                 p->nan == CUDNN_PROPAGATE_NAN,
                 x.dim[0] * x.dim[1],
                 x.dim[2],
                 x.dim[3],
                 y.dim[2],
                 y.dim[3],
                 {p->window[0], p->window[1]},
                 {p->pad[0], p->pad[1]},
                 {p->stride[0], p->stride[1]}};
    return CUDNN_STATUS_SUCCESS;
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t *descriptor)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "cudnnCreatePoolingDescriptor: NULL");
    *descriptor = new cudnnPoolingStruct{};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t descriptor)
{
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t descriptor,
                                          const cudnnPoolingMode_t mode,
                                          const cudnnNanPropagation_t nan, int length,
                                          const int window[], const int pad[], const int stride[])
{
    REFUSE_IF(!descriptor || !window || !pad || !stride, CUDNN_STATUS_BAD_PARAM,
              "cudnnSetPoolingNdDescriptor: NULL");
    REFUSE_IF(length != 2, CUDNN_STATUS_NOT_SUPPORTED, "%d spatial dimensions; 2 are simulated",
              length);
    REFUSE_IF(unsigned(mode) >= std::size(pool_modes) || unsigned(nan) > CUDNN_PROPAGATE_NAN,
              CUDNN_STATUS_BAD_PARAM, "no such mode");
    for (int i = 0; i < 2; i++)
        REFUSE_IF(window[i] <= 0 || stride[i] <= 0, CUDNN_STATUS_BAD_PARAM, "window %d, stride %d",
                  window[i], stride[i]);
    *descriptor = {mode, nan, {window[0], window[1]}, {pad[0], pad[1]}, {stride[0], stride[1]}};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t descriptor,
                                          cudnnPoolingMode_t mode, cudnnNanPropagation_t nan,
                                          int window_h, int window_w, int pad_h, int pad_w,
                                          int stride_h, int stride_w)
{
    const int window[] = {window_h, window_w}, pad[] = {pad_h, pad_w},
              stride[] = {stride_h, stride_w};
    return cudnnSetPoolingNdDescriptor(descriptor, mode, nan, 2, window, pad, stride);
}

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t descriptor,
                                                const cudnnTensorDescriptor_t x_desc, int *n,
                                                int *c, int *h, int *w)
{
    static const char call[] = "cudnnGetPooling2dForwardOutputDim";
    REFUSE_IF(!descriptor || !x_desc, CUDNN_STATUS_BAD_PARAM, "%s: NULL", call);
    int64_t dim[4];
    REFUSED(output_dims(call, *descriptor, x_desc->view, dim));
    *n = int(dim[0]), *c = int(dim[1]), *h = int(dim[2]), *w = int(dim[3]);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t descriptor,
                                  const void *alpha, const cudnnTensorDescriptor_t x_desc,
                                  const void *x, const void *beta,
                                  const cudnnTensorDescriptor_t y_desc, void *y)
{
    static const char call[] = "cudnnPoolingForward";
    REFUSED(
        cudnn_check(handle, call, {{"x", cudnn_view(x_desc), x}, {"y", cudnn_view(y_desc), y}}));
    const View vx = x_desc->view, vy = y_desc->view;
    Pool pool;
    REFUSED(describe(call, descriptor, vx, vy, &pool));
    REFUSE_IF(!alpha || !beta, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no alpha or beta", call);
    double factor = cudnn_scalar(vy, alpha), old = cudnn_scalar(vy, beta);
    Launch launch(call, handle->stream);
    launch.allow(Launch::Overlap::none);
    launch.in(x, vx);
    launch.out(y, vy, old != 0);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        view_store(vy, memory[1], pool_forward(pool, view_load(vx, memory[0])), factor, old);
    }),
                          call);
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t descriptor,
                                   const void *alpha, const cudnnTensorDescriptor_t y_desc,
                                   const void *y, const cudnnTensorDescriptor_t dy_desc,
                                   const void *dy, const cudnnTensorDescriptor_t x_desc,
                                   const void *x, const void *beta,
                                   const cudnnTensorDescriptor_t dx_desc, void *dx)
{
    static const char call[] = "cudnnPoolingBackward";
    REFUSED(cudnn_check(handle, call,
                        {{"y", cudnn_view(y_desc), y},
                         {"dy", cudnn_view(dy_desc), dy},
                         {"x", cudnn_view(x_desc), x},
                         {"dx", cudnn_view(dx_desc), dx}}));
    const View vy = y_desc->view, vdy = dy_desc->view, vx = x_desc->view, vdx = dx_desc->view;
    Pool pool;
    REFUSED(describe(call, descriptor, vx, vy, &pool));
    REFUSE_IF(!view_same(vy, vdy) || !view_same(vx, vdx), CUDNN_STATUS_BAD_PARAM,
              "%s: y is %s, dy %s, x %s, dx %s (or strides differ)", call, cudnn_dims(vy).c_str(),
              cudnn_dims(vdy).c_str(), cudnn_dims(vx).c_str(), cudnn_dims(vdx).c_str());
    REFUSE_IF(!alpha || !beta, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no alpha or beta", call);
    double factor = cudnn_scalar(vdx, alpha), old = cudnn_scalar(vdx, beta);
    bool settled = descriptor->mode != CUDNN_POOLING_MAX;
    Launch launch(call, handle->stream);
    launch.allow(Launch::Overlap::none);
    launch.in(y, vy);
    launch.in(dy, vdy);
    launch.in(x, vx);
    launch.out(dx, vdx, old != 0);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles grads = pool_backward(pool, view_load(vx, memory[2]), view_load(vy, memory[0]),
                                      view_load(vdy, memory[1]));
        if (!settled)
            unsettle(&grads);
        view_store(vdx, memory[3], grads, factor, old);
    }),
                          call);
}
