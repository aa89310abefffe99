/* rows.h: the kernels of rows.cu: softmax and LayerNorm: a block a row, read where it lies. As
 * launchers.h.
 */
#ifndef ENGINE_BACKEND_CUDA_ROWS_H
#define ENGINE_BACKEND_CUDA_ROWS_H

#include "engine/backend/cuda/launchers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* F32 [outer, n, inner], over n. */
struct softmax_launch {
    int64_t outer, n, inner;
};
cudaError_t launch_softmax(bool logarithm, const struct softmax_launch *softmax, const float *x,
                           float *y, cudaStream_t stream);
cudaError_t launch_softmax_grad(bool logarithm, const struct softmax_launch *softmax,
                                const float *y, const float *gy, float *gx, cudaStream_t stream);

/* x [rows, n]; w, b: F32 [n], or NULL: 1, 0; mean, variance: F32 [rows], or NULL: not wanted. */
struct layer_norm_launch {
    int64_t rows, n;
    double eps;
    const void *x;
    const float *w, *b;
    void *y;
    float *mean, *variance;
};
cudaError_t launch_layer_norm(bool bf16, const struct layer_norm_launch *norm, cudaStream_t stream);
struct layer_norm_grad_launch {
    int64_t rows, n;
    double eps;
    const void *x, *gy;
    const float *w, *mean, *variance;
    void *gx;
    float *gw, *gb; /* NULL: not wanted */
    float *scratch; /* layer_norm_scratch floats, where one is wanted */
};
int64_t layer_norm_scratch(int64_t rows, int64_t n);
cudaError_t launch_layer_norm_grad(bool bf16, const struct layer_norm_grad_launch *norm,
                                   cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
