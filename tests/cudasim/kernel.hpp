/* kernel.hpp: what a .cu file sees when g++ compiles it for the simulator (-include, before its
 * own): CUDA's words as C++, and a LAUNCH that makes a kernel known by its name. A block's threads
 * run one by one, so that its shared memory is a static variable.
 */
#ifndef TESTS_CUDASIM_KERNEL_HPP
#define TESTS_CUDASIM_KERNEL_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda_runtime_api.h>
#include <utility>
#include <vector_types.h>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)

/* The thread that runs, set by the simulated runtime. */
extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;
void cudasim_barrier();
inline void __syncthreads()
{
    cudasim_barrier();
}

using std::fabs;
using std::fmax;
using std::fmin;
using std::isfinite;
using std::isnan;

template <class To, class From> inline To cudasim_bits(From from)
{
    To to;
    static_assert(sizeof to == sizeof from);
    memcpy(&to, &from, sizeof to);
    return to;
}

inline float __uint_as_float(uint32_t x)
{
    return cudasim_bits<float>(x);
}

inline uint32_t __float_as_uint(float x)
{
    return cudasim_bits<uint32_t>(x);
}

inline float __int_as_float(int x)
{
    return cudasim_bits<float>(x);
}

inline int __float_as_int(float x)
{
    return cudasim_bits<int>(x);
}

inline uint32_t __umulhi(uint32_t x, uint32_t y)
{
    return uint32_t(uint64_t(x) * y >> 32);
}

inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}

inline float __fmul_rn(float x, float y)
{
    return x * y;
}

inline float __fadd_rn(float x, float y)
{
    return x + y;
}

template <class T> inline T atomicCAS(T *at, T expected, T wanted)
{
    T found = *at;
    if (found == expected)
        *at = wanted;
    return found;
}

template <class T> inline T atomicAdd(T *at, T more)
{
    T found = *at;
    *at = found + more;
    return found;
}

/* How a kernel is called from an array of pointers to its arguments. */
struct cudasim_kernel {
    const void *function;
    void (*call)(const void *function, void *const *arguments);
    size_t n;
    const size_t *sizes;
    const bool *pointers;
};
void cudasim_enroll(const cudasim_kernel &kernel);

template <class... Arguments> struct cudasim_signature {
    template <size_t... I>
    static void spread(const void *function, void *const *arguments, std::index_sequence<I...>)
    {
        reinterpret_cast<void (*)(Arguments...)>(const_cast<void *>(function))(
            *static_cast<std::remove_const_t<Arguments> *>(arguments[I])...);
    }

    static void call(const void *function, void *const *arguments)
    {
        spread(function, arguments, std::index_sequence_for<Arguments...>());
    }

    static bool enroll(void (*kernel)(Arguments...))
    {
        static const size_t sizes[] = {sizeof(Arguments)...};
        static const bool pointers[] = {std::is_pointer_v<Arguments>...};
        cudasim_enroll(
            {reinterpret_cast<const void *>(kernel), call, sizeof...(Arguments), sizes, pointers});
        return true;
    }
};

template <class... Arguments> bool cudasim_enroll_kernel(void (*kernel)(Arguments...))
{
    return cudasim_signature<Arguments...>::enroll(kernel);
}

/* Enrolled when the library is loaded, for every kernel that a LAUNCH names. */
template <auto Kernel> struct cudasim_enrolled {
    static inline const bool done = cudasim_enroll_kernel(Kernel);
};

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                     \
    ((void)(stream), (void)cudasim_enrolled<(kernel)>::done)

#endif
