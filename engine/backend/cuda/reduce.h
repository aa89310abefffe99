/* reduce.h: the kernels of reduce.cu: sums over rows, squares, statistics. As launchers.h. */
#ifndef ENGINE_BACKEND_CUDA_REDUCE_H
#define ENGINE_BACKEND_CUDA_REDUCE_H

#include "engine/backend/cuda/launchers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* reduce.cu: sums in one order, whatever the GPU. */
enum {
    COLUMN_PARTS = 64,
    COLUMN_PART_ROWS = 256,
    NORM_PARTS = 256,
    STATISTICS_PARTS = 64,
    STATISTICS_SUMS = 5
};
/* ret_sums[i]: of part[i * n …]. */
cudaError_t launch_sum_parts(const double *part, int64_t n, double *ret_sums, int64_t sums,
                             cudaStream_t stream);
/* Rows of the scratch that a sum of so many rows takes. */
int64_t column_parts(int64_t rows);
/* sum[c] = Σ x[r, c] in F32; scratch: F32 [column_parts(rows), columns]. */
cudaError_t launch_column_sums(bool bf16, const void *x, int64_t rows, int64_t columns, float *sum,
                               float *scratch, cudaStream_t stream);
cudaError_t launch_scale(float *x, int64_t n, const struct device_step *step, cudaStream_t stream);
/* *ret_total: Σ x²; scratch: [NORM_PARTS]. */
cudaError_t launch_square_sum(const float *x, int64_t n, double *scratch, double *ret_total,
                              cudaStream_t stream);
/* *ret_scale: what brings a norm of sqrt(*total) within max_norm, at most 1. */
cudaError_t launch_clip_scale(const double *total, double max_norm, float *ret_scale,
                              cudaStream_t stream);
/* scratch: [STATISTICS_PARTS, STATISTICS_SUMS]. Nothing is written unless step->record asks. */
cudaError_t launch_statistics(const float *x, int64_t n, bool scaled, double *scratch,
                              double *ret_statistics, const struct device_step *step,
                              cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
