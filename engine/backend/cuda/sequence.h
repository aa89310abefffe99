/* sequence.h: the kernels of sequence.cu: runs of memory, embeddings, steps of sequences. As
 * launchers.h.
 */
#ifndef ENGINE_BACKEND_CUDA_SEQUENCE_H
#define ENGINE_BACKEND_CUDA_SEQUENCE_H

#include "engine/backend/cuda/launchers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to[i * to_step + k] = from[i * from_step + k], k < length, i < runs; in elements of 2 or 4
 * bytes. */
struct runs_launch {
    int64_t runs, length, from_step, to_step;
};
cudaError_t launch_copy_runs(size_t element, const void *from, void *to,
                             const struct runs_launch *runs, cudaStream_t stream);

/* y [n, size] = rows of w [rows, size]; an index that names none is left in *fault. */
struct embedding_launch {
    int64_t n, a_sample, rows, size; /* a_sample: indices of one */
    int64_t padding_row;             /* whose gradient is zero; -1: none */
};
cudaError_t launch_embedding(const struct embedding_launch *embedding, const int64_t *index,
                             const float *w, float *y, const struct device_step *step,
                             struct device_fault *fault, cudaStream_t stream);
cudaError_t launch_embedding_grad(const struct embedding_launch *embedding, const int64_t *index,
                                  const float *gy, float *gw, cudaStream_t stream);

/* y[i] = x[i] + w[i % size]; n elements. */
cudaError_t launch_add_position(const float *x, const float *w, float *y, int64_t n, int64_t size,
                                cudaStream_t stream);
/* gw[k] = Σ gy[i * size + k] over the samples. */
cudaError_t launch_sum_samples(const float *gy, float *gw, int64_t samples, int64_t size,
                               cudaStream_t stream);

/* x [samples, steps, size] and its last valid step y [samples, size], in elements of 2 or 4 bytes;
 * lengths NULL: all are valid. */
struct last_launch {
    int64_t samples, steps, size;
};
cudaError_t launch_select_last(size_t element, const struct last_launch *last,
                               const int64_t *lengths, const void *x, void *y,
                               const struct device_step *step, struct device_fault *fault,
                               cudaStream_t stream);
/* gx is zero but for those steps. */
cudaError_t launch_select_last_grad(size_t element, const struct last_launch *last,
                                    const int64_t *lengths, const void *gy, void *gx,
                                    cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
