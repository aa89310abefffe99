/* channels.h: the kernels of channels.cu: BatchNorm in all its parts, and biases of convolutions:
 * what is summed over, or added to, all values of a channel. As launchers.h.
 *
 * w, b: F32 [C] or NULL: 1, 0. mean, variance: F32 [C]. Tensors of x's shape lie as x does.
 */
#ifndef ENGINE_BACKEND_CUDA_CHANNELS_H
#define ENGINE_BACKEND_CUDA_CHANNELS_H

#include "engine/backend/cuda/image.h"
#include "engine/backend/cuda/launchers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Doubles of scratch that sums over the channels of such an image take. */
int64_t channel_scratch(const struct image *image);

/* y[n, c, …] += b[c]. */
cudaError_t launch_add_bias(bool bf16, const struct image *image, const float *b, void *y,
                            cudaStream_t stream);
/* sum[c] = Σ x[n, c, …]. */
cudaError_t launch_channel_sums(bool bf16, const struct image *image, const void *x, float *sum,
                                double *scratch, cudaStream_t stream);

/* The batch's mean and biased variance. squares: instead of the variance, the sum of squared
 * deviations. */
cudaError_t launch_moments(bool bf16, const struct image *image, const void *x, bool squares,
                           float *mean, float *variance, double *scratch, cudaStream_t stream);
/* Moves the running statistics by these, of `count` values a channel, or, where that is NULL, of
 * `values`, as PyTorch does. tracked NULL: nobody counts the batches. */
cudaError_t launch_track(int64_t channels, double values, const float *count, const float *mean,
                         const float *variance, double momentum, float *running_mean,
                         float *running_var, int64_t *tracked, cudaStream_t stream);

struct normalize_launch {
    const void *x, *residual; /* residual NULL: none */
    const float *w, *b, *mean, *variance;
    double eps;
    bool relu; /* y = relu(norm(x) + residual) */
    void *y;
};
cudaError_t launch_normalize(bool bf16, const struct image *image,
                             const struct normalize_launch *normalize, cudaStream_t stream);

struct normalize_grad_launch {
    const void *x, *gy, *y; /* y: of relu; NULL: it is made again of x, w, b */
    const float *w, *b, *mean, *variance;
    double eps;
    bool relu;
    const float *sums;    /* [2, C]: Σ gy, Σ gy x̂ over the batch; gy after relu */
    const float *count;   /* [1]: of a channel's values in the batch; NULL: x's own */
    void *gx, *gresidual; /* gresidual NULL: none */
};
/* sums[0, c] = Σ gy, sums[1, c] = Σ gy x̂ (x̂: normalised x). */
cudaError_t launch_normalize_sums(bool bf16, const struct image *image,
                                  const struct normalize_grad_launch *grad, float *sums,
                                  double *scratch, cudaStream_t stream);
cudaError_t launch_normalize_grad(bool bf16, const struct image *image,
                                  const struct normalize_grad_launch *grad, cudaStream_t stream);

/* statistics [replicas, 2 C + 1] → mean, variance, count of all replicas' chunks as one. */
cudaError_t launch_combine(const float *statistics, int64_t replicas, int64_t channels, float *mean,
                           float *variance, float *count, cudaStream_t stream);
/* *to = value. */
cudaError_t launch_set_float(float *to, float value, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
