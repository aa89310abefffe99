/* channels.cu: see channels.h. A sum over a channel is cut into parts, the same on every GPU: a
 * block a part, then a thread a channel adds the parts, in double. */
#include "engine/backend/cuda/channels.h"
#include "engine/backend/cuda/real.cuh"

namespace engine
{

/* An image as kernels walk over it: values of a channel are numbered sample by sample. */
struct Walk {
    int64_t channels, pixels, count; /* count: values of a channel */
    bool last;                       /* channels lie last */

    __device__ int64_t at(int64_t channel, int64_t i) const
    {
        return last ? i * channels + channel
                    : (i / pixels * channels + channel) * pixels + i % pixels;
    }

    /* Of an element. */
    __device__ int64_t channel_of(int64_t i) const
    {
        return last ? i % channels : i / pixels % channels;
    }
};

Walk walk_of(const image *image)
{
    int64_t pixels = image->height * image->width;
    return {image->channels, pixels, image->samples * pixels, image->channels_last};
}

constexpr int ACROSS = 32, DOWN = 8; /* a block where channels lie last: 32 channels, 8 rows */
constexpr int64_t PART_VALUES = 2048, MAX_PARTS = 64;

int64_t parts_of(const Walk &walk)
{
    int64_t parts = (walk.count + PART_VALUES - 1) / PART_VALUES;
    return parts < MAX_PARTS ? parts : MAX_PARTS;
}

struct Pair {
    double first, second;
};

struct AddPairs {
    __device__ Pair operator()(Pair a, Pair b) const
    {
        return {a.first + b.first, a.second + b.second};
    }
};

/* Sums pair(channel, position) over a part of a channel's values: parts [part, channel]. Threads
 * side by side read what lies side by side. */
template <typename F> __device__ inline void sum_part(const Walk &walk, Pair *parts, const F &pair)
{
    __shared__ Pair room[ACROSS * DOWN];
    int64_t size = (walk.count + gridDim.y - 1) / gridDim.y, from = blockIdx.y * size;
    int64_t to = from + size < walk.count ? from + size : walk.count;
    unsigned t = threadIdx.y * ACROSS + threadIdx.x;
    int64_t channel = walk.last ? (int64_t)blockIdx.x * ACROSS + threadIdx.x : blockIdx.x;
    int64_t step = walk.last ? DOWN : ACROSS * DOWN;
    Pair sum = {0, 0};
    for (int64_t i = from + (walk.last ? threadIdx.y : t); channel < walk.channels && i < to;
         i += step)
        sum = AddPairs()(sum, pair(channel, walk.at(channel, i)));
    room[t] = sum;
    __syncthreads();
    for (unsigned half = ACROSS * DOWN / 2; half >= (walk.last ? ACROSS : 1); half /= 2) {
        if (t < half)
            room[t] = AddPairs()(room[t], room[t + half]);
        __syncthreads();
    }
    if (t < (walk.last ? ACROSS : 1) && channel < walk.channels)
        parts[(int64_t)blockIdx.y * walk.channels + channel] = room[t];
}

__device__ inline Pair add_parts(const Pair *parts, int64_t n, int64_t channel, int64_t channels)
{
    Pair sum = {0, 0};
    for (int64_t p = 0; p < n; p++)
        sum = AddPairs()(sum, parts[p * channels + channel]);
    return sum;
}

dim3 sum_grid(const Walk &walk)
{
    int64_t across = walk.last ? (walk.channels + ACROSS - 1) / ACROSS : walk.channels;
    return dim3((unsigned)across, (unsigned)parts_of(walk));
}

template <typename T> __global__ void add_bias(Walk walk, const float *b, T *y)
{
    for (int64_t i = thread_index(); i < walk.channels * walk.count; i += n_threads())
        put(&y[i], widen(y[i]) + b[walk.channel_of(i)]);
}

template <typename T> __global__ void sum_values(Walk walk, const T *x, Pair *parts)
{
    sum_part(walk, parts, [=](int64_t, int64_t at) { return Pair{(double)widen(x[at]), 0}; });
}

__global__ void leave_sums(const Pair *parts, int64_t n, int64_t channels, float *first,
                           float *second)
{
    for (int64_t c = thread_index(); c < channels; c += n_threads()) {
        Pair sum = add_parts(parts, n, c, channels);
        first[c] = (float)sum.first;
        if (second != nullptr)
            second[c] = (float)sum.second;
    }
}

/* Shifted by the channel's first value, so that a variance far below the mean's square survives. */
template <typename T> __global__ void sum_moments(Walk walk, const T *x, Pair *parts)
{
    sum_part(walk, parts, [=](int64_t channel, int64_t at) {
        double d = (double)widen(x[at]) - (double)widen(x[walk.at(channel, 0)]);
        return Pair{d, d * d};
    });
}

template <typename T>
__global__ void leave_moments(Walk walk, const T *x, const Pair *parts, int64_t n, bool squares,
                              float *mean, float *variance)
{
    double count = (double)walk.count;
    for (int64_t c = thread_index(); c < walk.channels; c += n_threads()) {
        Pair sum = add_parts(parts, n, c, walk.channels);
        double deviations = sum.second - sum.first * sum.first / count;
        deviations = deviations < 0 ? 0 : deviations;
        mean[c] = (float)((double)widen(x[walk.at(c, 0)]) + sum.first / count);
        variance[c] = (float)(squares ? deviations : deviations / count);
    }
}

/* `values`: of a channel; count NULL: as many as that says. */
__global__ void track(int64_t channels, double values, const float *count, const float *mean,
                      const float *variance, double momentum, float *running_mean,
                      float *running_var, int64_t *tracked)
{
    double n = count != nullptr ? (double)*count : values, unbias = n / (n - 1);
    for (int64_t c = thread_index(); c < channels; c += n_threads()) {
        running_mean[c] =
            (float)(momentum * (double)mean[c] + (1 - momentum) * (double)running_mean[c]);
        running_var[c] = (float)(momentum * unbias * (double)variance[c] +
                                 (1 - momentum) * (double)running_var[c]);
    }
    if (tracked != nullptr && thread_index() == 0)
        *tracked += 1;
}

/* A channel's numbers. */
struct Norm {
    float mean, inverse, w, b;

    __device__ float normal(float x) const
    {
        return (x - mean) * inverse;
    }
};

__device__ inline Norm norm_of(int64_t c, const float *w, const float *b, const float *mean,
                               const float *variance, double eps)
{
    return {mean[c], (float)(1 / sqrt((double)variance[c] + eps)), w != nullptr ? w[c] : 1,
            b != nullptr ? b[c] : 0};
}

template <typename T>
__global__ void normalize(Walk walk, const T *x, const T *residual, const float *w, const float *b,
                          const float *mean, const float *variance, double eps, bool relu, T *y)
{
    for (int64_t i = thread_index(); i < walk.channels * walk.count; i += n_threads()) {
        Norm norm = norm_of(walk.channel_of(i), w, b, mean, variance, eps);
        float value = norm.normal(widen(x[i])) * norm.w + norm.b;
        value += residual != nullptr ? widen(residual[i]) : 0;
        put(&y[i], relu && value < 0 ? 0 : value);
    }
}

/* gy where the ReLU let x pass. */
template <typename T>
__device__ inline float passed(const Norm &norm, const T *x, const T *gy, const T *y, bool relu,
                               int64_t i)
{
    float out = !relu ? 1 : y != nullptr ? widen(y[i]) : norm.normal(widen(x[i])) * norm.w + norm.b;
    return out <= 0 ? 0 : widen(gy[i]);
}

template <typename T>
__global__ void sum_gradients(Walk walk, const T *x, const T *gy, const T *y, const float *w,
                              const float *b, const float *mean, const float *variance, double eps,
                              bool relu, Pair *parts)
{
    sum_part(walk, parts, [=](int64_t channel, int64_t at) {
        Norm norm = norm_of(channel, w, b, mean, variance, eps);
        double g = (double)passed(norm, x, gy, y, relu, at);
        return Pair{g, g * (double)norm.normal(widen(x[at]))};
    });
}

template <typename T>
__global__ void normalize_grad(Walk walk, const T *x, const T *gy, const T *y, const float *w,
                               const float *b, const float *mean, const float *variance, double eps,
                               bool relu, const float *sums, const float *count, T *gx,
                               T *gresidual)
{
    float n = count != nullptr ? *count : (float)walk.count;
    for (int64_t i = thread_index(); i < walk.channels * walk.count; i += n_threads()) {
        int64_t c = walk.channel_of(i);
        Norm norm = norm_of(c, w, b, mean, variance, eps);
        float g = passed(norm, x, gy, y, relu, i), normal = norm.normal(widen(x[i]));
        put(&gx[i],
            norm.w * norm.inverse * (g - sums[c] / n - normal * (sums[walk.channels + c] / n)));
        if (gresidual != nullptr)
            put(&gresidual[i], g);
    }
}

/* Of replicas in their order, by the moments about the first one's mean. */
__global__ void combine(const float *statistics, int64_t replicas, int64_t channels, float *mean,
                        float *variance, float *count)
{
    int64_t size = 2 * channels + 1;
    double n = 0;
    for (int64_t r = 0; r < replicas; r++)
        n += (double)statistics[r * size];
    for (int64_t c = thread_index(); c < channels; c += n_threads()) {
        double shift = (double)statistics[1 + c], first = 0, second = 0;
        for (int64_t r = 0; r < replicas; r++) {
            const float *row = statistics + r * size;
            double d = (double)row[1 + c] - shift;
            first += (double)row[0] * d;
            second += (double)row[1 + channels + c] + (double)row[0] * d * d;
        }
        mean[c] = (float)(shift + first / n);
        variance[c] = (float)((second - first * first / n) / n);
    }
    if (thread_index() == 0)
        *count = (float)n;
}

__global__ void set_float(float *to, float value)
{
    *to = value;
}

template <typename T>
cudaError_t run_moments(const Walk &walk, const void *x, bool squares, float *mean, float *variance,
                        Pair *parts, cudaStream_t stream)
{
    LAUNCH(sum_moments<T>, sum_grid(walk), dim3(ACROSS, DOWN), 0, stream, walk, (const T *)x,
           parts);
    LAUNCH(leave_moments<T>, blocks_for(walk.channels), BLOCK, 0, stream, walk, (const T *)x,
           (const Pair *)parts, parts_of(walk), squares, mean, variance);
    return cudaGetLastError();
}

template <typename T>
void run_normalize(const Walk &walk, const normalize_launch *l, cudaStream_t stream)
{
    LAUNCH(normalize<T>, blocks_for(walk.channels * walk.count), BLOCK, 0, stream, walk,
           (const T *)l->x, (const T *)l->residual, l->w, l->b, l->mean, l->variance, l->eps,
           l->relu, (T *)l->y);
}

template <typename T>
void run_sum_gradients(const Walk &walk, const normalize_grad_launch *l, Pair *parts,
                       cudaStream_t stream)
{
    LAUNCH(sum_gradients<T>, sum_grid(walk), dim3(ACROSS, DOWN), 0, stream, walk, (const T *)l->x,
           (const T *)l->gy, (const T *)l->y, l->w, l->b, l->mean, l->variance, l->eps, l->relu,
           parts);
}

template <typename T>
void run_normalize_grad(const Walk &walk, const normalize_grad_launch *l, cudaStream_t stream)
{
    LAUNCH(normalize_grad<T>, blocks_for(walk.channels * walk.count), BLOCK, 0, stream, walk,
           (const T *)l->x, (const T *)l->gy, (const T *)l->y, l->w, l->b, l->mean, l->variance,
           l->eps, l->relu, l->sums, l->count, (T *)l->gx, (T *)l->gresidual);
}

} // namespace engine

using namespace engine;

int64_t channel_scratch(const struct image *image)
{
    return 2 * image->channels * parts_of(walk_of(image));
}

cudaError_t launch_add_bias(bool bf16, const struct image *image, const float *b, void *y,
                            cudaStream_t stream)
{
    Walk walk = walk_of(image);
    unsigned blocks = blocks_for(walk.channels * walk.count);
    if (bf16)
        LAUNCH(add_bias<engine::bf16>, blocks, BLOCK, 0, stream, walk, b, (engine::bf16 *)y);
    else
        LAUNCH(add_bias<float>, blocks, BLOCK, 0, stream, walk, b, (float *)y);
    return cudaGetLastError();
}

cudaError_t launch_channel_sums(bool bf16, const struct image *image, const void *x, float *sum,
                                double *scratch, cudaStream_t stream)
{
    Walk walk = walk_of(image);
    Pair *parts = (Pair *)scratch;
    if (bf16)
        LAUNCH(sum_values<engine::bf16>, sum_grid(walk), dim3(ACROSS, DOWN), 0, stream, walk,
               (const engine::bf16 *)x, parts);
    else
        LAUNCH(sum_values<float>, sum_grid(walk), dim3(ACROSS, DOWN), 0, stream, walk,
               (const float *)x, parts);
    LAUNCH(leave_sums, blocks_for(walk.channels), BLOCK, 0, stream, (const Pair *)parts,
           parts_of(walk), walk.channels, sum, (float *)nullptr);
    return cudaGetLastError();
}

cudaError_t launch_moments(bool bf16, const struct image *image, const void *x, bool squares,
                           float *mean, float *variance, double *scratch, cudaStream_t stream)
{
    return (bf16 ? run_moments<engine::bf16> : run_moments<float>)(walk_of(image), x, squares, mean,
                                                                   variance, (Pair *)scratch,
                                                                   stream);
}

cudaError_t launch_track(int64_t channels, double values, const float *count, const float *mean,
                         const float *variance, double momentum, float *running_mean,
                         float *running_var, int64_t *tracked, cudaStream_t stream)
{
    LAUNCH(track, blocks_for(channels), BLOCK, 0, stream, channels, values, count, mean, variance,
           momentum, running_mean, running_var, tracked);
    return cudaGetLastError();
}

cudaError_t launch_normalize(bool bf16, const struct image *image,
                             const struct normalize_launch *normalize, cudaStream_t stream)
{
    (bf16 ? run_normalize<engine::bf16> : run_normalize<float>)(walk_of(image), normalize, stream);
    return cudaGetLastError();
}

cudaError_t launch_normalize_sums(bool bf16, const struct image *image,
                                  const struct normalize_grad_launch *grad, float *sums,
                                  double *scratch, cudaStream_t stream)
{
    Walk walk = walk_of(image);
    Pair *parts = (Pair *)scratch;
    (bf16 ? run_sum_gradients<engine::bf16> : run_sum_gradients<float>)(walk, grad, parts, stream);
    LAUNCH(leave_sums, blocks_for(walk.channels), BLOCK, 0, stream, (const Pair *)parts,
           parts_of(walk), walk.channels, sums, sums + walk.channels);
    return cudaGetLastError();
}

cudaError_t launch_normalize_grad(bool bf16, const struct image *image,
                                  const struct normalize_grad_launch *grad, cudaStream_t stream)
{
    (bf16 ? run_normalize_grad<engine::bf16> : run_normalize_grad<float>)(walk_of(image), grad,
                                                                          stream);
    return cudaGetLastError();
}

cudaError_t launch_combine(const float *statistics, int64_t replicas, int64_t channels, float *mean,
                           float *variance, float *count, cudaStream_t stream)
{
    LAUNCH(combine, blocks_for(channels), BLOCK, 0, stream, statistics, replicas, channels, mean,
           variance, count);
    return cudaGetLastError();
}

cudaError_t launch_set_float(float *to, float value, cudaStream_t stream)
{
    LAUNCH(set_float, 1, 1, 0, stream, to, value);
    return cudaGetLastError();
}
