/* real.cuh: what kernels share: float and BF16 elements, blocks and grids, sums over a block.
 *
 * BF16 is stored and widened for computing; every result is rounded once, to the nearest, of two
 * as near the even one.
 */
#ifndef ENGINE_BACKEND_CUDA_REAL_CUH
#define ENGINE_BACKEND_CUDA_REAL_CUH

#include "engine/backend/cuda/launch.h"
#include "engine/backend/cuda/launchers.h"

namespace engine
{

struct bf16 {
    uint16_t bits;
};

__device__ inline float widen(float x)
{
    return x;
}

__device__ inline float widen(bf16 x)
{
    return __uint_as_float((uint32_t)x.bits << 16);
}

__device__ inline void put(float *to, float x)
{
    *to = x;
}

/* A NaN stays one. */
__device__ inline void put(bf16 *to, float x)
{
    uint32_t bits = __float_as_uint(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    to->bits = (uint16_t)(x != x ? bits >> 16 | 0x40 : rounded);
}

constexpr int BLOCK = 256, MAX_BLOCKS = 2048;

/* Blocks whose threads walk over n elements: `for (i = thread_index(); i < n; i += n_threads())`.
 */
inline unsigned blocks_for(int64_t n)
{
    int64_t blocks = (n + BLOCK - 1) / BLOCK;
    return (unsigned)(blocks < 1 ? 1 : blocks > MAX_BLOCKS ? MAX_BLOCKS : blocks);
}

__device__ inline int64_t thread_index()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline int64_t n_threads()
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* Combines the values of a block's threads, a power of two, in one order; every thread gets the
 * result. `room`: one value a thread, shared; it may be used again at once. */
template <typename T, typename Combine>
__device__ inline T block_reduce(T value, T *room, Combine combine)
{
    unsigned t = threadIdx.x;
    room[t] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half)
            room[t] = combine(room[t], room[t + half]);
        __syncthreads();
    }
    T result = room[0];
    __syncthreads();
    return result;
}

struct Sum {
    template <typename T> __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
};

struct Largest {
    __device__ float operator()(float a, float b) const
    {
        return a > b ? a : b;
    }
};

/* The first to find what must not be there says so. */
__device__ inline void blame(device_fault *fault, int kind, int64_t sample, int64_t value,
                             int64_t limit)
{
    if (atomicCAS(&fault->kind, (int)FAULT_NONE, kind) != FAULT_NONE)
        return;
    fault->sample = sample;
    fault->value = value;
    fault->limit = limit;
}

/* Threads of a block that goes over n elements: a power of two, from a warp to BLOCK. */
inline unsigned threads_for(int64_t n)
{
    unsigned threads = 32;
    while (threads < BLOCK && threads < n)
        threads *= 2;
    return threads;
}

} // namespace engine

#endif
