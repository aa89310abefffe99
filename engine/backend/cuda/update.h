/* update.h: the kernels of update.cu: optimizers' steps. As launchers.h. */
#ifndef ENGINE_BACKEND_CUDA_UPDATE_H
#define ENGINE_BACKEND_CUDA_UPDATE_H

#include "engine/backend/cuda/launchers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* update.cu: F32; scale NULL: 1. */
struct sgd_launch {
    float *w, *momentum_buffer; /* NULL: no momentum */
    const float *grad, *scale;
    float momentum, keep, weight_decay; /* keep: 1 - dampening */
    bool nesterov;
    int64_t n;
};
cudaError_t launch_sgd(const struct sgd_launch *sgd, const struct device_step *step,
                       cudaStream_t stream);
struct adam_launch {
    float *w, *exp_avg, *exp_avg_sq, *max_exp_avg_sq; /* the last NULL: no amsgrad */
    const float *grad, *scale;
    double beta1, beta2, eps, weight_decay;
    bool decoupled;
    int64_t n;
};
cudaError_t launch_adam(const struct adam_launch *adam, const struct device_step *step,
                        cudaStream_t stream);
struct rmsprop_launch {
    float *w, *square_avg, *momentum_buffer, *grad_avg; /* the last two: NULL where not asked for */
    const float *grad, *scale;
    float alpha, rest, eps, momentum, weight_decay; /* rest: 1 - alpha */
    int64_t n;
};
cudaError_t launch_rmsprop(const struct rmsprop_launch *rmsprop, const struct device_step *step,
                           cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
