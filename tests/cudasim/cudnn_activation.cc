/* cudnn_activation.cc: activations and softmax. */
#include <algorithm>
#include <cmath>

#include "tests/cudasim/cudnn.hpp"
#include "tests/cudasim/loops.hpp"

namespace sim
{

using A = cudnnActivationStruct;

static double sigmoid(double x)
{
    return 1 / (1 + std::exp(-x));
}

/* NaN passes only where it is asked for. */
static double clamp(const A &a, double x, double high)
{
    if (std::isnan(x))
        return a.nan == CUDNN_PROPAGATE_NAN ? x : 0;
    return std::min(std::max(x, 0.0), high);
}

static const struct {
    double (*forward)(const A &a, double x);
    double (*backward)(const A &a, double x, double y, double dy);
} activations[] = {
    {[](const A &, double x) { return sigmoid(x); },
     [](const A &, double, double y, double dy) { return dy * y * (1 - y); }},
    {[](const A &a, double x) { return clamp(a, x, HUGE_VAL); },
     [](const A &, double, double y, double dy) { return y > 0 ? dy : 0; }},
    {[](const A &, double x) { return std::tanh(x); },
     [](const A &, double, double y, double dy) { return dy * (1 - y * y); }},
    {[](const A &a, double x) { return clamp(a, x, a.coef); },
     [](const A &a, double x, double, double dy) { return x > 0 && x < a.coef ? dy : 0; }},
    {[](const A &a, double x) { return x > 0 ? x : a.coef * std::expm1(x); },
     [](const A &a, double x, double, double dy) {
         return x > 0 ? dy : dy * a.coef * std::exp(x);
     }},
    {[](const A &, double x) { return x; },
     [](const A &, double, double, double dy) { return dy; }},
    {[](const A &a, double x) { return x * sigmoid(a.swish_beta * x); },
     [](const A &a, double x, double, double dy) {
         double s = sigmoid(a.swish_beta * x);
         return dy * (s + a.swish_beta * x * s * (1 - s));
     }},
};
static_assert(std::size(activations) == CUDNN_ACTIVATION_SWISH + 1, "a row a mode");

double activation_forward(const A &activation, double x)
{
    return activations[activation.mode].forward(activation, x);
}

double activation_backward(const A &activation, double x, double y, double dy)
{
    return activations[activation.mode].backward(activation, x, y, dy);
}

/* (N, C, H, W) as the distributions of a mode. */
static Softmax softmax_shape(cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode,
                             const View &view)
{
    int64_t pixels = 1;
    for (int i = 2; i < view.rank; i++)
        pixels *= view.dim[i];
    bool channel = mode == CUDNN_SOFTMAX_MODE_CHANNEL;
    return {SoftmaxMode(algo), view.dim[0], channel ? view.dim[1] : view.dim[1] * pixels,
            channel ? pixels : 1};
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *descriptor)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "cudnnCreateActivationDescriptor: NULL");
    *descriptor = new cudnnActivationStruct{};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t descriptor)
{
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t descriptor,
                                           cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                           double coef)
{
    REFUSE_IF(!descriptor || unsigned(mode) >= std::size(activations), CUDNN_STATUS_BAD_PARAM,
              "cudnnSetActivationDescriptor: no such mode");
    *descriptor = {mode, nan, coef, 1};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t descriptor,
                                     const void *alpha, const cudnnTensorDescriptor_t x_desc,
                                     const void *x, const void *beta,
                                     const cudnnTensorDescriptor_t y_desc, void *y)
{
    static const char call[] = "cudnnActivationForward";
    REFUSED(
        cudnn_check(handle, call, {{"x", cudnn_view(x_desc), x}, {"y", cudnn_view(y_desc), y}}));
    REFUSE_IF(!descriptor || !alpha || !beta, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
              "%s: no descriptor, alpha or beta", call);
    const View vx = x_desc->view, vy = y_desc->view;
    REFUSE_IF(!view_same_dims(vx, vy) || vx.type != vy.type, CUDNN_STATUS_BAD_PARAM,
              "%s: x is %s, y is %s", call, cudnn_dims(vx).c_str(), cudnn_dims(vy).c_str());
    REFUSE_IF(x == y && !view_same(vx, vy), CUDNN_STATUS_BAD_PARAM,
              "%s: in place, with other strides", call);
    double factor = cudnn_scalar(vy, alpha), old = cudnn_scalar(vy, beta);
    A activation = *descriptor;
    Launch launch(call, handle->stream);
    launch.in(x, vx);
    launch.out(y, vy, old != 0);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles values = view_load(vx, memory[0]);
        for (double &value : values)
            value = activation_forward(activation, value);
        view_store(vy, memory[1], values, factor, old);
    }),
                          call);
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t descriptor,
                                      const void *alpha, const cudnnTensorDescriptor_t y_desc,
                                      const void *y, const cudnnTensorDescriptor_t dy_desc,
                                      const void *dy, const cudnnTensorDescriptor_t x_desc,
                                      const void *x, const void *beta,
                                      const cudnnTensorDescriptor_t dx_desc, void *dx)
{
    static const char call[] = "cudnnActivationBackward";
    REFUSED(cudnn_check(handle, call,
                        {{"y", cudnn_view(y_desc), y},
                         {"dy", cudnn_view(dy_desc), dy},
                         {"x", cudnn_view(x_desc), x},
                         {"dx", cudnn_view(dx_desc), dx}}));
    REFUSE_IF(!descriptor || !alpha || !beta, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
              "%s: no descriptor, alpha or beta", call);
    const View vy = y_desc->view, vdy = dy_desc->view, vx = x_desc->view, vdx = dx_desc->view;
    REFUSE_IF(!view_same_dims(vx, vdx) || !view_same(vy, vdy) || !view_same_dims(vx, vy) ||
                  vx.type != vdx.type,
              CUDNN_STATUS_BAD_PARAM,
              "%s: x is %s, dx %s, y %s, dy %s (or strides of y and dy differ)", call,
              cudnn_dims(vx).c_str(), cudnn_dims(vdx).c_str(), cudnn_dims(vy).c_str(),
              cudnn_dims(vdy).c_str());
    double factor = cudnn_scalar(vdx, alpha), old = cudnn_scalar(vdx, beta);
    A activation = *descriptor;
    Launch launch(call, handle->stream);
    launch.in(y, vy);
    launch.in(dy, vdy);
    launch.in(x, vx);
    launch.out(dx, vdx, old != 0);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles out = view_load(vy, memory[0]), grads = view_load(vdy, memory[1]);
        doubles in = view_load(vx, memory[2]);
        for (size_t i = 0; i < grads.size(); i++)
            grads[i] = activation_backward(activation, in[i], out[i], grads[i]);
        view_store(vdx, memory[3], grads, factor, old);
    }),
                          call);
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                  cudnnSoftmaxMode_t mode, const void *alpha,
                                  const cudnnTensorDescriptor_t x_desc, const void *x,
                                  const void *beta, const cudnnTensorDescriptor_t y_desc, void *y)
{
    static const char call[] = "cudnnSoftmaxForward";
    REFUSED(
        cudnn_check(handle, call, {{"x", cudnn_view(x_desc), x}, {"y", cudnn_view(y_desc), y}}));
    const View vx = x_desc->view, vy = y_desc->view;
    REFUSE_IF(unsigned(algo) > CUDNN_SOFTMAX_LOG || unsigned(mode) > CUDNN_SOFTMAX_MODE_CHANNEL ||
                  !alpha || !beta,
              CUDNN_STATUS_BAD_PARAM, "%s: no such algorithm or mode, or no alpha or beta", call);
    REFUSE_IF(!view_same_dims(vx, vy) || vx.type != vy.type, CUDNN_STATUS_BAD_PARAM,
              "%s: x is %s, y is %s", call, cudnn_dims(vx).c_str(), cudnn_dims(vy).c_str());
    double factor = cudnn_scalar(vy, alpha), old = cudnn_scalar(vy, beta);
    Softmax softmax = softmax_shape(algo, mode, vx);
    Launch launch(call, handle->stream);
    launch.in(x, vx);
    launch.out(y, vy, old != 0);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        view_store(vy, memory[1], softmax_forward(softmax, view_load(vx, memory[0])), factor, old);
    }),
                          call);
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                   cudnnSoftmaxMode_t mode, const void *alpha,
                                   const cudnnTensorDescriptor_t y_desc, const void *y,
                                   const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                   const void *beta, const cudnnTensorDescriptor_t dx_desc,
                                   void *dx)
{
    static const char call[] = "cudnnSoftmaxBackward";
    REFUSED(cudnn_check(handle, call,
                        {{"y", cudnn_view(y_desc), y},
                         {"dy", cudnn_view(dy_desc), dy},
                         {"dx", cudnn_view(dx_desc), dx}}));
    const View vy = y_desc->view, vdy = dy_desc->view, vdx = dx_desc->view;
    REFUSE_IF(unsigned(algo) > CUDNN_SOFTMAX_LOG || unsigned(mode) > CUDNN_SOFTMAX_MODE_CHANNEL ||
                  !alpha || !beta,
              CUDNN_STATUS_BAD_PARAM, "%s: no such algorithm or mode, or no alpha or beta", call);
    REFUSE_IF(!view_same_dims(vy, vdy) || !view_same_dims(vy, vdx) || vy.type != vdy.type ||
                  vy.type != vdx.type,
              CUDNN_STATUS_BAD_PARAM, "%s: y is %s, dy %s, dx %s", call, cudnn_dims(vy).c_str(),
              cudnn_dims(vdy).c_str(), cudnn_dims(vdx).c_str());
    double factor = cudnn_scalar(vdx, alpha), old = cudnn_scalar(vdx, beta);
    Softmax softmax = softmax_shape(algo, mode, vy);
    Launch launch(call, handle->stream);
    launch.in(y, vy);
    launch.in(dy, vdy);
    launch.out(dx, vdx, old != 0);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles grads =
            softmax_backward(softmax, view_load(vy, memory[0]), view_load(vdy, memory[1]));
        view_store(vdx, memory[2], grads, factor, old);
    }),
                          call);
}
