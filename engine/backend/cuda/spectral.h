/* spectral.h: the kernels of spectral.cu: a weight as a matrix [rows, columns] and its largest
 * singular value. As launchers.h; sums in double.
 */
#ifndef ENGINE_BACKEND_CUDA_SPECTRAL_H
#define ENGINE_BACKEND_CUDA_SPECTRAL_H

#include "engine/backend/cuda/launchers.h"

#ifdef __cplusplus
extern "C" {
#endif

struct matrix_launch {
    const float *at;
    int64_t rows, columns;
};
/* sum[r] = Σ a[r, c] b[r, c]; by_row false: b is a vector [columns]. */
cudaError_t launch_row_products(const struct matrix_launch *a, const float *b, bool by_row,
                                double *sum, cudaStream_t stream);
/* sum[c] = Σ a[r, c] b[r]. */
cudaError_t launch_column_products(const struct matrix_launch *a, const float *b, double *sum,
                                   cudaStream_t stream);
/* vector = copy = sum / max(|sum|, 1e-12). */
cudaError_t launch_unit_vector(const double *sum, int64_t n, float *vector, float *copy,
                               cudaStream_t stream);
/* *sigma = Σ u[r] sum[r]. */
cudaError_t launch_sigma(const float *u, const double *sum, int64_t n, float *sigma,
                         cudaStream_t stream);
/* y[i] = x[i] / *sigma. */
cudaError_t launch_divide(const float *x, const float *sigma, float *y, int64_t n,
                          cudaStream_t stream);
/* gw = gy / σ − (Σ sum) / σ² · u vᵀ; sum: of each row of gy · w. */
cudaError_t launch_spectral_grad(const struct matrix_launch *gy, const float *u, const float *v,
                                 const float *sigma, const double *sum, float *gw,
                                 cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
