/* pool.cu: see pool.h. */
#include "engine/backend/cuda/pool.h"
#include "engine/backend/cuda/real.cuh"

namespace engine
{

/* A pixel of one channel of one sample. */
struct Pixel {
    int64_t sample, channel, h, w;
};

__device__ inline Pixel pixel_at(const image &m, int64_t i)
{
    int64_t channel = i % m.channels, rest = i / m.channels;
    if (!m.channels_last) {
        int64_t plane = i / (m.height * m.width);
        rest = plane / m.channels * m.height * m.width + i % (m.height * m.width);
        channel = plane % m.channels;
    }
    return {rest / (m.height * m.width), channel, rest / m.width % m.height, rest % m.width};
}

/* Where a pixel of that sample and channel lies. */
__device__ inline int64_t offset_of(const image &m, const Pixel &p, int64_t h, int64_t w)
{
    return m.channels_last ? ((p.sample * m.height + h) * m.width + w) * m.channels + p.channel
                           : ((p.sample * m.channels + p.channel) * m.height + h) * m.width + w;
}

__device__ __host__ inline int64_t count_of(const image &m)
{
    return m.samples * m.channels * m.height * m.width;
}

__device__ inline int64_t ceil_div(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : 0;
}

/* Steps of a window along an axis that lie inside the image. */
struct Steps {
    int64_t start, begin, end;
};

__device__ inline Steps steps_of(const pool_launch &p, int axis, int64_t o, int64_t size)
{
    int64_t start = o * p.stride[axis] - p.padding[axis];
    int64_t end = ceil_div(size - start, p.dilation[axis]);
    return {start, ceil_div(-start, p.dilation[axis]), end < p.kernel[axis] ? end : p.kernel[axis]};
}

/* NaN before any number, the first of equals, as in PyTorch. */
template <typename T> __global__ void max_pool(pool_launch p, const T *x, T *y, int32_t *pixels)
{
    for (int64_t i = thread_index(); i < count_of(p.y); i += n_threads()) {
        Pixel out = pixel_at(p.y, i);
        Steps rows = steps_of(p, 0, out.h, p.x.height), columns = steps_of(p, 1, out.w, p.x.width);
        float best = -INFINITY;
        int64_t pixel = -1;
        for (int64_t r = rows.begin; r < rows.end; r++)
            for (int64_t c = columns.begin; c < columns.end; c++) {
                int64_t h = rows.start + r * p.dilation[0], w = columns.start + c * p.dilation[1];
                float value = widen(x[offset_of(p.x, out, h, w)]);
                if (pixel < 0 || value > best || value != value) {
                    best = value;
                    pixel = h * p.x.width + w;
                }
            }
        put(&y[i], best);
        if (pixels != nullptr)
            pixels[i] = (int32_t)pixel;
    }
}

/* Outputs whose window may reach an input along an axis. */
struct Span {
    int64_t begin, end;
};

__device__ inline Span reaching(const pool_launch &p, int axis, int64_t at, int64_t outputs)
{
    int64_t extent = (p.kernel[axis] - 1) * p.dilation[axis];
    int64_t end = (at + p.padding[axis]) / p.stride[axis] + 1;
    return {ceil_div(at + p.padding[axis] - extent, p.stride[axis]), end < outputs ? end : outputs};
}

template <typename T>
__global__ void max_pool_grad(pool_launch p, const T *gy, const int32_t *pixels, T *gx)
{
    for (int64_t i = thread_index(); i < count_of(p.x); i += n_threads()) {
        Pixel in = pixel_at(p.x, i);
        Span rows = reaching(p, 0, in.h, p.y.height), columns = reaching(p, 1, in.w, p.y.width);
        float sum = 0;
        for (int64_t h = rows.begin; h < rows.end; h++)
            for (int64_t w = columns.begin; w < columns.end; w++) {
                int64_t at = offset_of(p.y, in, h, w);
                if (pixels[at] == in.h * p.x.width + in.w)
                    sum += widen(gy[at]);
            }
        put(&gx[i], sum);
    }
}

/* What an average takes in along an axis. */
struct Bin {
    int64_t begin, end, counted;
};

/* PyTorch's: a window's part inside the input and, with count_include_pad, inside the padding. */
struct Windows {
    static __device__ Bin bin(const pool_launch &p, int axis, int64_t o, int64_t size, int64_t)
    {
        int64_t begin = o * p.stride[axis] - p.padding[axis], end = begin + p.kernel[axis];
        end = end < size + p.padding[axis] ? end : size + p.padding[axis];
        Bin bin = {begin > 0 ? begin : 0, end < size ? end : size, end - begin};
        if (!p.count_include_pad)
            bin.counted = bin.end - bin.begin;
        return bin;
    }
    static __device__ Span reaching(const pool_launch &p, int axis, int64_t at, int64_t,
                                    int64_t outputs)
    {
        return engine::reaching(p, axis, at, outputs);
    }
};

/* AdaptiveAvgPool2d's: neighbouring bins may share an input. */
struct Adaptive {
    static __device__ Bin bin(const pool_launch &, int, int64_t o, int64_t size, int64_t outputs)
    {
        int64_t begin = o * size / outputs, end = ((o + 1) * size + outputs - 1) / outputs;
        return {begin, end, end - begin};
    }
    static __device__ Span reaching(const pool_launch &, int, int64_t at, int64_t size,
                                    int64_t outputs)
    {
        return {at * outputs / size, ((at + 1) * outputs + size - 1) / size};
    }
};

__device__ inline float factor_of(const pool_launch &p, const Bin &rows, const Bin &columns)
{
    int64_t counted = p.divisor_override != 0 ? p.divisor_override : rows.counted * columns.counted;
    return 1 / (float)counted;
}

template <typename Bins, typename T> __global__ void average(pool_launch p, const T *x, T *y)
{
    for (int64_t i = thread_index(); i < count_of(p.y); i += n_threads()) {
        Pixel out = pixel_at(p.y, i);
        Bin rows = Bins::bin(p, 0, out.h, p.x.height, p.y.height);
        Bin columns = Bins::bin(p, 1, out.w, p.x.width, p.y.width);
        float sum = 0;
        for (int64_t h = rows.begin; h < rows.end; h++)
            for (int64_t w = columns.begin; w < columns.end; w++)
                sum += widen(x[offset_of(p.x, out, h, w)]);
        put(&y[i], sum * factor_of(p, rows, columns));
    }
}

template <typename Bins, typename T> __global__ void average_grad(pool_launch p, const T *gy, T *gx)
{
    for (int64_t i = thread_index(); i < count_of(p.x); i += n_threads()) {
        Pixel in = pixel_at(p.x, i);
        Span over = Bins::reaching(p, 0, in.h, p.x.height, p.y.height);
        Span across = Bins::reaching(p, 1, in.w, p.x.width, p.y.width);
        float sum = 0;
        for (int64_t h = over.begin; h < over.end; h++)
            for (int64_t w = across.begin; w < across.end; w++) {
                Bin rows = Bins::bin(p, 0, h, p.x.height, p.y.height);
                Bin columns = Bins::bin(p, 1, w, p.x.width, p.y.width);
                bool inside = in.h >= rows.begin && in.h < rows.end && in.w >= columns.begin &&
                              in.w < columns.end;
                if (inside)
                    sum += widen(gy[offset_of(p.y, in, h, w)]) * factor_of(p, rows, columns);
            }
        put(&gx[i], sum);
    }
}

template <typename T>
void run_max_pool(const pool_launch *p, const void *x, void *y, int32_t *pixel, cudaStream_t stream)
{
    LAUNCH(max_pool<T>, blocks_for(count_of(p->y)), BLOCK, 0, stream, *p, (const T *)x, (T *)y,
           pixel);
}

template <typename T>
void run_max_pool_grad(const pool_launch *p, const void *gy, const int32_t *pixel, void *gx,
                       cudaStream_t stream)
{
    LAUNCH(max_pool_grad<T>, blocks_for(count_of(p->x)), BLOCK, 0, stream, *p, (const T *)gy, pixel,
           (T *)gx);
}

template <typename Bins, typename T>
void run_average(const pool_launch *p, const void *x, void *y, cudaStream_t stream)
{
    LAUNCH((average<Bins, T>), blocks_for(count_of(p->y)), BLOCK, 0, stream, *p, (const T *)x,
           (T *)y);
}

template <typename Bins, typename T>
void run_average_grad(const pool_launch *p, const void *gy, void *gx, cudaStream_t stream)
{
    LAUNCH((average_grad<Bins, T>), blocks_for(count_of(p->x)), BLOCK, 0, stream, *p, (const T *)gy,
           (T *)gx);
}

} // namespace engine

using namespace engine;

cudaError_t launch_max_pool(bool bf16, const struct pool_launch *pool, const void *x, void *y,
                            int32_t *pixel, cudaStream_t stream)
{
    (bf16 ? run_max_pool<engine::bf16> : run_max_pool<float>)(pool, x, y, pixel, stream);
    return cudaGetLastError();
}

cudaError_t launch_max_pool_grad(bool bf16, const struct pool_launch *pool, const void *gy,
                                 const int32_t *pixel, void *gx, cudaStream_t stream)
{
    (bf16 ? run_max_pool_grad<engine::bf16> : run_max_pool_grad<float>)(pool, gy, pixel, gx,
                                                                        stream);
    return cudaGetLastError();
}

cudaError_t launch_avg_pool(bool bf16, const struct pool_launch *pool, const void *x, void *y,
                            cudaStream_t stream)
{
    (bf16 ? run_average<Windows, engine::bf16> : run_average<Windows, float>)(pool, x, y, stream);
    return cudaGetLastError();
}

cudaError_t launch_avg_pool_grad(bool bf16, const struct pool_launch *pool, const void *gy,
                                 void *gx, cudaStream_t stream)
{
    (bf16 ? run_average_grad<Windows, engine::bf16> : run_average_grad<Windows, float>)(pool, gy,
                                                                                        gx, stream);
    return cudaGetLastError();
}

cudaError_t launch_adaptive_pool(bool bf16, const struct pool_launch *pool, const void *x, void *y,
                                 cudaStream_t stream)
{
    (bf16 ? run_average<Adaptive, engine::bf16> : run_average<Adaptive, float>)(pool, x, y, stream);
    return cudaGetLastError();
}

cudaError_t launch_adaptive_pool_grad(bool bf16, const struct pool_launch *pool, const void *gy,
                                      void *gx, cudaStream_t stream)
{
    (bf16 ? run_average_grad<Adaptive, engine::bf16>
          : run_average_grad<Adaptive, float>)(pool, gy, gx, stream);
    return cudaGetLastError();
}
