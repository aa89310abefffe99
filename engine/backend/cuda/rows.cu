/* rows.cu: see rows.h. */
#include "engine/backend/cuda/real.cuh"
#include "engine/backend/cuda/rows.h"

namespace engine
{

/* Where the row of this block begins; its elements are `inner` apart. */
__device__ inline int64_t row_begin(const softmax_launch &s)
{
    return (int64_t)blockIdx.x / s.inner * s.n * s.inner + blockIdx.x % s.inner;
}

__global__ void softmax(bool logarithm, softmax_launch s, const float *x, float *y)
{
    __shared__ float room[BLOCK];
    int64_t begin = row_begin(s);
    float most = -INFINITY, sum = 0;
    for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x)
        most = Largest()(most, x[begin + i * s.inner]);
    most = block_reduce(most, room, Largest());
    for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x)
        sum += expf(x[begin + i * s.inner] - most);
    sum = block_reduce(sum, room, Sum());
    float shift = logf(sum), factor = 1 / sum;
    for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x) {
        float above = x[begin + i * s.inner] - most;
        y[begin + i * s.inner] = logarithm ? above - shift : expf(above) * factor;
    }
}

__global__ void softmax_grad(bool logarithm, softmax_launch s, const float *y, const float *gy,
                             float *gx)
{
    __shared__ float room[BLOCK];
    int64_t begin = row_begin(s);
    float sum = 0;
    for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x) {
        int64_t at = begin + i * s.inner;
        sum += logarithm ? gy[at] : gy[at] * y[at];
    }
    sum = block_reduce(sum, room, Sum());
    for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x) {
        int64_t at = begin + i * s.inner;
        gx[at] = logarithm ? gy[at] - expf(y[at]) * sum : y[at] * (gy[at] - sum);
    }
}

/* Shifted by the row's first value, so that a variance far below the mean's square survives. */
template <typename T>
__global__ void layer_norm(int64_t n, double eps, const T *x, const float *w, const float *b, T *y,
                           float *means, float *variances)
{
    __shared__ double room[BLOCK];
    const T *row = x + (int64_t)blockIdx.x * n;
    double first = (double)widen(row[0]), sum = 0, squares = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        double d = (double)widen(row[i]) - first;
        sum += d;
        squares += d * d;
    }
    sum = block_reduce(sum, room, Sum());
    squares = block_reduce(squares, room, Sum());
    double variance = (squares - sum * sum / (double)n) / (double)n;
    variance = variance < 0 ? 0 : variance;
    float mean = (float)(first + sum / (double)n), inverse = (float)(1 / sqrt(variance + eps));
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        float normal = (widen(row[i]) - mean) * inverse;
        put(&y[(int64_t)blockIdx.x * n + i],
            normal * (w != nullptr ? w[i] : 1) + (b != nullptr ? b[i] : 0));
    }
    if (threadIdx.x == 0 && means != nullptr) {
        means[blockIdx.x] = mean;
        variances[blockIdx.x] = (float)variance;
    }
}

__device__ inline float inverse_of(float variance, double eps)
{
    return (float)(1 / sqrt((double)variance + eps));
}

template <typename T>
__global__ void layer_norm_grad(int64_t n, double eps, const T *x, const T *gy, const float *w,
                                const float *means, const float *variances, T *gx)
{
    __shared__ float room[BLOCK];
    int64_t begin = (int64_t)blockIdx.x * n;
    float mean = means[blockIdx.x], inverse = inverse_of(variances[blockIdx.x], eps);
    float sum = 0, dot = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        float g = widen(gy[begin + i]) * (w != nullptr ? w[i] : 1);
        sum += g;
        dot += g * (widen(x[begin + i]) - mean) * inverse;
    }
    sum = block_reduce(sum, room, Sum()) / (float)n;
    dot = block_reduce(dot, room, Sum()) / (float)n;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        float g = widen(gy[begin + i]) * (w != nullptr ? w[i] : 1);
        float normal = (widen(x[begin + i]) - mean) * inverse;
        put(&gx[begin + i], inverse * (g - sum - normal * dot));
    }
}

constexpr int64_t ROWS_A_PART = 64, MAX_PARTS = 128;

int64_t parts_of(int64_t rows)
{
    int64_t parts = (rows + ROWS_A_PART - 1) / ROWS_A_PART;
    return parts < MAX_PARTS ? parts : MAX_PARTS;
}

/* Of a run of rows, a thread a column: parts [part, 2, n]: Σ gy x̂, Σ gy. */
template <typename T>
__global__ void weight_parts(int64_t rows, int64_t n, double eps, const T *x, const T *gy,
                             const float *means, const float *variances, float *parts)
{
    int64_t size = (rows + gridDim.y - 1) / gridDim.y, from = blockIdx.y * size;
    int64_t to = from + size < rows ? from + size : rows, i = thread_index();
    float dot = 0, sum = 0;
    for (int64_t r = from; i < n && r < to; r++) {
        float g = widen(gy[r * n + i]), inverse = inverse_of(variances[r], eps);
        dot += g * (widen(x[r * n + i]) - means[r]) * inverse;
        sum += g;
    }
    if (i < n) {
        parts[(int64_t)blockIdx.y * 2 * n + i] = dot;
        parts[((int64_t)blockIdx.y * 2 + 1) * n + i] = sum;
    }
}

__global__ void leave_weights(int64_t n_parts, int64_t n, const float *parts, float *gw, float *gb)
{
    for (int64_t i = thread_index(); i < n; i += n_threads()) {
        float dot = 0, sum = 0;
        for (int64_t p = 0; p < n_parts; p++) {
            dot += parts[p * 2 * n + i];
            sum += parts[(p * 2 + 1) * n + i];
        }
        if (gw != nullptr)
            gw[i] = dot;
        if (gb != nullptr)
            gb[i] = sum;
    }
}

template <typename T> void run_layer_norm(const layer_norm_launch *l, cudaStream_t stream)
{
    LAUNCH(layer_norm<T>, (unsigned)l->rows, threads_for(l->n), 0, stream, l->n, l->eps,
           (const T *)l->x, l->w, l->b, (T *)l->y, l->mean, l->variance);
}

template <typename T> void run_layer_norm_grad(const layer_norm_grad_launch *l, cudaStream_t stream)
{
    LAUNCH(layer_norm_grad<T>, (unsigned)l->rows, threads_for(l->n), 0, stream, l->n, l->eps,
           (const T *)l->x, (const T *)l->gy, l->w, l->mean, l->variance, (T *)l->gx);
    if (l->gw == nullptr && l->gb == nullptr)
        return;
    dim3 grid((unsigned)((l->n + BLOCK - 1) / BLOCK), (unsigned)parts_of(l->rows));
    LAUNCH(weight_parts<T>, grid, BLOCK, 0, stream, l->rows, l->n, l->eps, (const T *)l->x,
           (const T *)l->gy, l->mean, l->variance, l->scratch);
    LAUNCH(leave_weights, blocks_for(l->n), BLOCK, 0, stream, parts_of(l->rows), l->n,
           (const float *)l->scratch, l->gw, l->gb);
}

} // namespace engine

using namespace engine;

cudaError_t launch_softmax(bool logarithm, const struct softmax_launch *s, const float *x, float *y,
                           cudaStream_t stream)
{
    LAUNCH(softmax, (unsigned)(s->outer * s->inner), threads_for(s->n), 0, stream, logarithm, *s, x,
           y);
    return cudaGetLastError();
}

cudaError_t launch_softmax_grad(bool logarithm, const struct softmax_launch *s, const float *y,
                                const float *gy, float *gx, cudaStream_t stream)
{
    LAUNCH(softmax_grad, (unsigned)(s->outer * s->inner), threads_for(s->n), 0, stream, logarithm,
           *s, y, gy, gx);
    return cudaGetLastError();
}

cudaError_t launch_layer_norm(bool bf16, const struct layer_norm_launch *norm, cudaStream_t stream)
{
    (bf16 ? run_layer_norm<engine::bf16> : run_layer_norm<float>)(norm, stream);
    return cudaGetLastError();
}

int64_t layer_norm_scratch(int64_t rows, int64_t n)
{
    return parts_of(rows) * 2 * n;
}

cudaError_t launch_layer_norm_grad(bool bf16, const struct layer_norm_grad_launch *norm,
                                   cudaStream_t stream)
{
    (bf16 ? run_layer_norm_grad<engine::bf16> : run_layer_norm_grad<float>)(norm, stream);
    return cudaGetLastError();
}
