/* spectral.cu: see spectral.h. */
#include "engine/backend/cuda/real.cuh"
#include "engine/backend/cuda/spectral.h"

namespace engine
{

/* A block a row. */
__global__ void row_products(const float *a, int64_t columns, const float *b, int64_t b_stride,
                             double *sums)
{
    __shared__ double room[BLOCK];
    const float *row = a + (int64_t)blockIdx.x * columns, *by = b + (int64_t)blockIdx.x * b_stride;
    double sum = 0;
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x)
        sum += (double)row[c] * (double)by[c];
    sum = block_reduce(sum, room, Sum());
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

__global__ void column_products(const float *a, int64_t rows, int64_t columns, const float *b,
                                double *sums)
{
    for (int64_t c = thread_index(); c < columns; c += n_threads()) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++)
            sum += (double)a[r * columns + c] * (double)b[r];
        sums[c] = sum;
    }
}

/* Over one block. */
template <typename F> __device__ inline double sum_over(int64_t n, const F &term)
{
    __shared__ double room[BLOCK];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += term(i);
    return block_reduce(sum, room, Sum());
}

/* torch.nn.functional.normalize with spectral_norm's eps. */
__global__ void unit_vector(const double *sums, int64_t n, float *vector, float *copy)
{
    double norm = sqrt(sum_over(n, [=](int64_t i) { return sums[i] * sums[i]; }));
    norm = norm > 1e-12 || norm != norm ? norm : 1e-12;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        vector[i] = copy[i] = (float)(sums[i] / norm);
}

__global__ void find_sigma(const float *u, const double *sums, int64_t n, float *sigma)
{
    double sum = sum_over(n, [=](int64_t i) { return (double)u[i] * sums[i]; });
    if (threadIdx.x == 0)
        *sigma = (float)sum;
}

__global__ void divide(const float *x, const float *sigma, float *y, int64_t n)
{
    for (int64_t i = thread_index(); i < n; i += n_threads())
        y[i] = x[i] / *sigma;
}

__global__ void spectral_grad(const float *gy, int64_t rows, int64_t columns, const float *u,
                              const float *v, const float *sigmas, const double *sums, float *gw)
{
    double sigma = (double)*sigmas;
    double factor = sum_over(rows, [=](int64_t r) { return sums[r]; }) / (sigma * sigma);
    for (int64_t i = thread_index(); i < rows * columns; i += n_threads())
        gw[i] = (float)((double)gy[i] / sigma -
                        factor * (double)u[i / columns] * (double)v[i % columns]);
}

} // namespace engine

using namespace engine;

cudaError_t launch_row_products(const struct matrix_launch *a, const float *b, bool by_row,
                                double *sum, cudaStream_t stream)
{
    LAUNCH(row_products, (unsigned)a->rows, threads_for(a->columns), 0, stream, a->at, a->columns,
           b, by_row ? a->columns : 0, sum);
    return cudaGetLastError();
}

cudaError_t launch_column_products(const struct matrix_launch *a, const float *b, double *sum,
                                   cudaStream_t stream)
{
    LAUNCH(column_products, blocks_for(a->columns), BLOCK, 0, stream, a->at, a->rows, a->columns, b,
           sum);
    return cudaGetLastError();
}

cudaError_t launch_unit_vector(const double *sum, int64_t n, float *vector, float *copy,
                               cudaStream_t stream)
{
    LAUNCH(unit_vector, 1, threads_for(n), 0, stream, sum, n, vector, copy);
    return cudaGetLastError();
}

cudaError_t launch_sigma(const float *u, const double *sum, int64_t n, float *sigma,
                         cudaStream_t stream)
{
    LAUNCH(find_sigma, 1, threads_for(n), 0, stream, u, sum, n, sigma);
    return cudaGetLastError();
}

cudaError_t launch_divide(const float *x, const float *sigma, float *y, int64_t n,
                          cudaStream_t stream)
{
    LAUNCH(divide, blocks_for(n), BLOCK, 0, stream, x, sigma, y, n);
    return cudaGetLastError();
}

cudaError_t launch_spectral_grad(const struct matrix_launch *gy, const float *u, const float *v,
                                 const float *sigma, const double *sum, float *gw,
                                 cudaStream_t stream)
{
    LAUNCH(spectral_grad, blocks_for(gy->rows * gy->columns), BLOCK, 0, stream, gy->at, gy->rows,
           gy->columns, u, v, sigma, sum, gw);
    return cudaGetLastError();
}
