/* cudnn_norm.cc: batch normalisation. */
#include <algorithm>

#include "tests/cudasim/cudnn.hpp"
#include "tests/cudasim/loops.hpp"

namespace sim
{

/* What the three calls have in common. `param` describes scale, bias, mean and variance. */
struct Batch {
    cudnnBatchNormMode_t mode;
    const View *x, *other, *param; /* other: y, or dy */
    double epsilon;
};

static Norm norm_of(const Batch &batch)
{
    const View &x = *batch.x;
    int64_t inner = view_count(x) / x.dim[0] / x.dim[1];
    if (batch.mode == CUDNN_BATCHNORM_PER_ACTIVATION)
        return {x.dim[0], x.dim[1] * inner, 1, batch.epsilon};
    return {x.dim[0], x.dim[1], inner, batch.epsilon};
}

static cudnnStatus_t check(const char *call, const Batch &batch, const void *const factors[4])
{
    const View &x = *batch.x, &param = *batch.param;
    for (int i = 0; i < 4; i++)
        REFUSE_IF(!factors[i], CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no alpha or beta", call);
    REFUSE_IF(unsigned(batch.mode) > CUDNN_BATCHNORM_SPATIAL_PERSISTENT, CUDNN_STATUS_BAD_PARAM,
              "%s: no such mode", call);
    REFUSE_IF(x.rank != 4 && x.rank != 5, CUDNN_STATUS_NOT_SUPPORTED, "%s: x has %d dimensions",
              call, x.rank);
    REFUSE_IF(!view_same_dims(x, *batch.other) || x.type != batch.other->type,
              CUDNN_STATUS_BAD_PARAM, "%s: x is %s, the other tensor %s", call,
              cudnn_dims(x).c_str(), cudnn_dims(*batch.other).c_str());
    Norm norm = norm_of(batch);
    REFUSE_IF(param.dim[0] != 1 || view_count(param) != norm.c || param.dim[1] != x.dim[1] ||
                  param.type != Type::f32,
              CUDNN_STATUS_BAD_PARAM, "%s: scale and bias are %s for x %s", call,
              cudnn_dims(param).c_str(), cudnn_dims(x).c_str());
    REFUSE_IF(batch.epsilon < CUDNN_BN_MIN_EPSILON, CUDNN_STATUS_BAD_PARAM, "%s: epsilon is %g",
              call, batch.epsilon);
    return CUDNN_STATUS_SUCCESS;
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived,
                                            const cudnnTensorDescriptor_t x_desc,
                                            cudnnBatchNormMode_t mode)
{
    REFUSE_IF(!derived || !x_desc || unsigned(mode) > CUDNN_BATCHNORM_SPATIAL_PERSISTENT,
              CUDNN_STATUS_BAD_PARAM, "cudnnDeriveBNTensorDescriptor: NULL, or no such mode");
    const View &x = x_desc->view;
    std::vector<int> dim(x.dim, x.dim + x.rank);
    dim[0] = 1;
    for (size_t i = 2; i < dim.size() && mode != CUDNN_BATCHNORM_PER_ACTIVATION; i++)
        dim[i] = 1;
    return cudnnSetTensorNdDescriptorEx(derived, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, x.rank,
                                        dim.data());
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t x_desc, const void *x, const cudnnTensorDescriptor_t y_desc,
    void *y, const cudnnTensorDescriptor_t param_desc, const void *scale, const void *bias,
    double momentum, void *running_mean, void *running_variance, double epsilon, void *saved_mean,
    void *saved_inverse)
{
    static const char call[] = "cudnnBatchNormalizationForwardTraining";
    const View *views[] = {cudnn_view(x_desc), cudnn_view(y_desc), cudnn_view(param_desc)};
    REFUSED(cudnn_check(handle, call,
                        {{"x", views[0], x},
                         {"y", views[1], y},
                         {"scale", views[2], scale},
                         {"bias", views[2], bias}}));
    Batch batch = {mode, views[0], views[1], views[2], epsilon};
    const void *const factors[] = {alpha, beta, alpha, beta};
    REFUSED(check(call, batch, factors));
    REFUSE_IF(!running_mean != !running_variance || !saved_mean != !saved_inverse,
              CUDNN_STATUS_BAD_PARAM, "%s: one of two statistics is NULL", call);
    Norm norm = norm_of(batch);
    double count = double(norm.n * norm.pixels), unbiased = count / std::max(count - 1, 1.0);
    double factor = cudnn_scalar(*views[1], alpha), old = cudnn_scalar(*views[1], beta);
    View vx = *views[0], vy = *views[1], vp = *views[2];
    Launch launch(call, handle->stream);
    launch.in(x, vx);
    launch.in(scale, vp);
    launch.in(bias, vp);
    launch.out(y, vy, old != 0);
    launch.out(running_mean, vp, momentum != 1);
    launch.out(running_variance, vp, momentum != 1);
    launch.out(saved_mean, vp);
    launch.out(saved_inverse, vp);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles values = view_load(vx, memory[0]);
        NormMoments m = norm_moments(norm, values);
        doubles inverse = norm_inverse(norm, m.variance);
        view_store(vy, memory[3],
                   norm_apply(norm, values, m.mean, inverse, view_load(vp, memory[1]),
                              view_load(vp, memory[2])),
                   factor, old);
        if (memory[4]) {
            view_store(vp, memory[4], m.mean, momentum, 1 - momentum);
            view_store(vp, memory[5], m.variance, momentum * unbiased, 1 - momentum);
        }
        if (memory[6]) {
            view_store(vp, memory[6], m.mean);
            view_store(vp, memory[7], inverse);
        }
    }),
                          call);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t x_desc, const void *x, const cudnnTensorDescriptor_t y_desc,
    void *y, const cudnnTensorDescriptor_t param_desc, const void *scale, const void *bias,
    const void *mean, const void *variance, double epsilon)
{
    static const char call[] = "cudnnBatchNormalizationForwardInference";
    const View *views[] = {cudnn_view(x_desc), cudnn_view(y_desc), cudnn_view(param_desc)};
    REFUSED(cudnn_check(handle, call,
                        {{"x", views[0], x},
                         {"y", views[1], y},
                         {"scale", views[2], scale},
                         {"bias", views[2], bias},
                         {"the mean", views[2], mean},
                         {"the variance", views[2], variance}}));
    Batch batch = {mode, views[0], views[1], views[2], epsilon};
    const void *const factors[] = {alpha, beta, alpha, beta};
    REFUSED(check(call, batch, factors));
    Norm norm = norm_of(batch);
    double factor = cudnn_scalar(*views[1], alpha), old = cudnn_scalar(*views[1], beta);
    View vx = *views[0], vy = *views[1], vp = *views[2];
    Launch launch(call, handle->stream);
    launch.in(x, vx);
    for (const void *param : {scale, bias, mean, variance})
        launch.in(param, vp);
    launch.out(y, vy, old != 0);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles inverse = norm_inverse(norm, view_load(vp, memory[4]));
        view_store(vy, memory[5],
                   norm_apply(norm, view_load(vx, memory[0]), view_load(vp, memory[3]), inverse,
                              view_load(vp, memory[1]), view_load(vp, memory[2])),
                   factor, old);
    }),
                          call);
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha_data, const void *beta_data,
    const void *alpha_param, const void *beta_param, const cudnnTensorDescriptor_t x_desc,
    const void *x, const cudnnTensorDescriptor_t dy_desc, const void *dy,
    const cudnnTensorDescriptor_t dx_desc, void *dx, const cudnnTensorDescriptor_t param_desc,
    const void *scale, void *dscale, void *dbias, double epsilon, const void *saved_mean,
    const void *saved_inverse)
{
    static const char call[] = "cudnnBatchNormalizationBackward";
    const View *views[] = {cudnn_view(x_desc), cudnn_view(dy_desc), cudnn_view(dx_desc),
                           cudnn_view(param_desc)};
    REFUSED(cudnn_check(handle, call,
                        {{"x", views[0], x},
                         {"dy", views[1], dy},
                         {"dx", views[2], dx},
                         {"scale", views[3], scale},
                         {"the scale's gradient", views[3], dscale},
                         {"the bias' gradient", views[3], dbias}}));
    Batch batch = {mode, views[0], views[1], views[3], epsilon};
    const void *const factors[] = {alpha_data, beta_data, alpha_param, beta_param};
    REFUSED(check(call, batch, factors));
    REFUSE_IF(!view_same_dims(*views[0], *views[2]) || views[0]->type != views[2]->type,
              CUDNN_STATUS_BAD_PARAM, "%s: x is %s, dx %s", call, cudnn_dims(*views[0]).c_str(),
              cudnn_dims(*views[2]).c_str());
    REFUSE_IF(!saved_mean != !saved_inverse, CUDNN_STATUS_BAD_PARAM,
              "%s: one of two statistics is NULL", call);
    Norm norm = norm_of(batch);
    double factor = cudnn_scalar(*views[2], alpha_data), old = cudnn_scalar(*views[2], beta_data);
    double factor_p = cudnn_scalar(*views[3], alpha_param),
           old_p = cudnn_scalar(*views[3], beta_param);
    View vx = *views[0], vdy = *views[1], vdx = *views[2], vp = *views[3];
    Launch launch(call, handle->stream);
    launch.in(x, vx);
    launch.in(dy, vdy);
    for (const void *param : {scale, saved_mean, saved_inverse})
        launch.in(param, vp);
    launch.out(dx, vdx, old != 0);
    launch.out(dscale, vp, old_p != 0);
    launch.out(dbias, vp, old_p != 0);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles values = view_load(vx, memory[0]);
        NormMoments m = norm_moments(norm, values);
        doubles inverse = norm_inverse(norm, m.variance);
        if (memory[3]) {
            m.mean = view_load(vp, memory[3]);
            inverse = view_load(vp, memory[4]);
        }
        NormGrads grads = norm_backward(norm, values, view_load(vdy, memory[1]),
                                        view_load(vp, memory[2]), m.mean, inverse);
        view_store(vdx, memory[5], grads.dx, factor, old);
        view_store(vp, memory[6], grads.dscale, factor_p, old_p);
        view_store(vp, memory[7], grads.dbias, factor_p, old_p);
    }),
                          call);
}
