/* sequence.cu: see sequence.h. */
#include "engine/backend/cuda/real.cuh"
#include "engine/backend/cuda/sequence.h"

namespace engine
{

template <typename T> __global__ void copy_runs(const T *from, T *to, runs_launch r)
{
    for (int64_t i = thread_index(); i < r.runs * r.length; i += n_threads()) {
        int64_t run = i / r.length, k = i % r.length;
        to[run * r.to_step + k] = from[run * r.from_step + k];
    }
}

__global__ void embedding(embedding_launch e, const int64_t *index, const float *w, float *y,
                          const device_step *step, device_fault *fault)
{
    for (int64_t i = thread_index(); i < e.n * e.size; i += n_threads()) {
        int64_t at = i / e.size, row = index[at], k = i % e.size;
        bool there = row >= 0 && row < e.rows;
        y[i] = there ? w[row * e.size + k] : 0;
        if (!there && k == 0)
            blame(fault, FAULT_INDEX, step->first_sample + at / e.a_sample, row, e.rows);
    }
}

/* A thread a column adds the rows of all samples in their order: no atomics. gw is zero before. */
__global__ void embedding_grad(embedding_launch e, const int64_t *index, const float *gy, float *gw)
{
    int64_t k = thread_index();
    for (int64_t i = 0; k < e.size && i < e.n; i++) {
        int64_t row = index[i];
        if (row != e.padding_row && row >= 0 && row < e.rows)
            gw[row * e.size + k] += gy[i * e.size + k];
    }
}

__global__ void add_position(const float *x, const float *w, float *y, int64_t n, int64_t size)
{
    for (int64_t i = thread_index(); i < n; i += n_threads())
        y[i] = x[i] + w[i % size];
}

__global__ void sum_samples(const float *gy, float *gw, int64_t samples, int64_t size)
{
    for (int64_t k = thread_index(); k < size; k += n_threads()) {
        float sum = gy[k];
        for (int64_t i = 1; i < samples; i++)
            sum += gy[i * size + k];
        gw[k] = sum;
    }
}

/* -1: the length is none. */
__device__ inline int64_t last_step(const int64_t *lengths, int64_t sample, int64_t steps)
{
    int64_t length = lengths != nullptr ? lengths[sample] : steps;
    return length < 1 || length > steps ? -1 : length - 1;
}

template <typename T>
__global__ void select_last(last_launch l, const int64_t *lengths, const T *x, T *y,
                            const device_step *step, device_fault *fault)
{
    for (int64_t i = thread_index(); i < l.samples * l.size; i += n_threads()) {
        int64_t sample = i / l.size, k = i % l.size, last = last_step(lengths, sample, l.steps);
        y[i] = last < 0 ? 0 : x[(sample * l.steps + last) * l.size + k];
        if (last < 0 && k == 0)
            blame(fault, FAULT_LENGTH, step->first_sample + sample, lengths[sample], l.steps);
    }
}

template <typename T>
__global__ void select_last_grad(last_launch l, const int64_t *lengths, const T *gy, T *gx)
{
    for (int64_t i = thread_index(); i < l.samples * l.steps * l.size; i += n_threads()) {
        int64_t sample = i / (l.steps * l.size), at = i / l.size % l.steps;
        gx[i] = at == last_step(lengths, sample, l.steps) ? gy[sample * l.size + i % l.size] : 0;
    }
}

} // namespace engine

using namespace engine;

cudaError_t launch_copy_runs(size_t element, const void *from, void *to,
                             const struct runs_launch *runs, cudaStream_t stream)
{
    unsigned blocks = blocks_for(runs->runs * runs->length);
    if (element == sizeof(uint16_t))
        LAUNCH(copy_runs<uint16_t>, blocks, BLOCK, 0, stream, (const uint16_t *)from,
               (uint16_t *)to, *runs);
    else
        LAUNCH(copy_runs<uint32_t>, blocks, BLOCK, 0, stream, (const uint32_t *)from,
               (uint32_t *)to, *runs);
    return cudaGetLastError();
}

cudaError_t launch_embedding(const struct embedding_launch *e, const int64_t *index, const float *w,
                             float *y, const struct device_step *step, struct device_fault *fault,
                             cudaStream_t stream)
{
    LAUNCH(embedding, blocks_for(e->n * e->size), BLOCK, 0, stream, *e, index, w, y, step, fault);
    return cudaGetLastError();
}

cudaError_t launch_embedding_grad(const struct embedding_launch *e, const int64_t *index,
                                  const float *gy, float *gw, cudaStream_t stream)
{
    cudaError_t status = cudaMemsetAsync(gw, 0, (size_t)(e->rows * e->size) * sizeof *gw, stream);
    if (status != cudaSuccess)
        return status;
    LAUNCH(embedding_grad, (unsigned)((e->size + 31) / 32), 32, 0, stream, *e, index, gy, gw);
    return cudaGetLastError();
}

cudaError_t launch_add_position(const float *x, const float *w, float *y, int64_t n, int64_t size,
                                cudaStream_t stream)
{
    LAUNCH(add_position, blocks_for(n), BLOCK, 0, stream, x, w, y, n, size);
    return cudaGetLastError();
}

cudaError_t launch_sum_samples(const float *gy, float *gw, int64_t samples, int64_t size,
                               cudaStream_t stream)
{
    LAUNCH(sum_samples, blocks_for(size), BLOCK, 0, stream, gy, gw, samples, size);
    return cudaGetLastError();
}

cudaError_t launch_select_last(size_t element, const struct last_launch *l, const int64_t *lengths,
                               const void *x, void *y, const struct device_step *step,
                               struct device_fault *fault, cudaStream_t stream)
{
    unsigned blocks = blocks_for(l->samples * l->size);
    if (element == sizeof(uint16_t))
        LAUNCH(select_last<uint16_t>, blocks, BLOCK, 0, stream, *l, lengths, (const uint16_t *)x,
               (uint16_t *)y, step, fault);
    else
        LAUNCH(select_last<uint32_t>, blocks, BLOCK, 0, stream, *l, lengths, (const uint32_t *)x,
               (uint32_t *)y, step, fault);
    return cudaGetLastError();
}

cudaError_t launch_select_last_grad(size_t element, const struct last_launch *l,
                                    const int64_t *lengths, const void *gy, void *gx,
                                    cudaStream_t stream)
{
    unsigned blocks = blocks_for(l->samples * l->steps * l->size);
    if (element == sizeof(uint16_t))
        LAUNCH(select_last_grad<uint16_t>, blocks, BLOCK, 0, stream, *l, lengths,
               (const uint16_t *)gy, (uint16_t *)gx);
    else
        LAUNCH(select_last_grad<uint32_t>, blocks, BLOCK, 0, stream, *l, lengths,
               (const uint32_t *)gy, (uint32_t *)gx);
    return cudaGetLastError();
}
