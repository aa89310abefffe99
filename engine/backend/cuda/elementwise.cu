/* elementwise.cu: activations and their gradients, sums and products of tensors. */
#include "engine/backend/cuda/real.cuh"

namespace engine
{

/* y of x; gx of what was saved and gy. NaN stays NaN. */
struct Relu {
    static __device__ float y(float x)
    {
        return x < 0 ? 0 : x;
    }
    static __device__ float gx(float y, float gy)
    {
        return y <= 0 ? 0 : gy;
    }
};

struct Gelu {
    static __device__ float y(float x)
    {
        return 0.5f * x * (1 + erff(x * 0.70710678118654752f));
    }
    static __device__ float gx(float x, float gy)
    {
        float below = 0.5f * (1 + erff(x * 0.70710678118654752f));
        return gy * (below + x * 0.39894228040143268f * expf(-0.5f * x * x));
    }
};

struct GeluTanh {
    static __device__ float inner(float x)
    {
        return tanhf(0.79788456080286536f * x * (1 + 0.044715f * x * x));
    }
    static __device__ float y(float x)
    {
        return 0.5f * x * (1 + inner(x));
    }
    static __device__ float gx(float x, float gy)
    {
        float t = inner(x);
        float slope = 0.79788456080286536f * (1 + 3 * 0.044715f * x * x);
        return gy * (0.5f * (1 + t) + 0.5f * x * (1 - t * t) * slope);
    }
};

struct Sigmoid {
    static __device__ float y(float x)
    {
        float e = expf(-fabsf(x));
        return (x < 0 ? e : 1) / (1 + e);
    }
    static __device__ float gx(float y, float gy)
    {
        return gy * y * (1 - y);
    }
};

struct Silu {
    static __device__ float y(float x)
    {
        return x * Sigmoid::y(x);
    }
    static __device__ float gx(float x, float gy)
    {
        float s = Sigmoid::y(x);
        return gy * s * (1 + x * (1 - s));
    }
};

struct Tanh {
    static __device__ float y(float x)
    {
        return tanhf(x);
    }
    static __device__ float gx(float y, float gy)
    {
        return gy * (1 - y * y);
    }
};

template <typename F, typename T> __global__ void activation(const T *x, T *y, int64_t n)
{
    for (int64_t i = thread_index(); i < n; i += n_threads())
        put(&y[i], F::y(widen(x[i])));
}

template <typename F, typename T>
__global__ void activation_grad(const T *saved, const T *gy, T *gx, int64_t n)
{
    for (int64_t i = thread_index(); i < n; i += n_threads())
        put(&gx[i], F::gx(widen(saved[i]), widen(gy[i])));
}

template <typename F, typename T>
void run_activation(const void *x, void *y, int64_t n, cudaStream_t stream)
{
    LAUNCH((activation<F, T>), blocks_for(n), BLOCK, 0, stream, (const T *)x, (T *)y, n);
}

template <typename F, typename T>
void run_activation_grad(const void *saved, const void *gy, void *gx, int64_t n,
                         cudaStream_t stream)
{
    LAUNCH((activation_grad<F, T>), blocks_for(n), BLOCK, 0, stream, (const T *)saved,
           (const T *)gy, (T *)gx, n);
}

/* Of F32 and of BF16. */
struct ActivationRow {
    void (*forward[2])(const void *x, void *y, int64_t n, cudaStream_t stream);
    void (*grad[2])(const void *saved, const void *gy, void *gx, int64_t n, cudaStream_t stream);
};

template <typename F> constexpr ActivationRow activation_row()
{
    return {{run_activation<F, float>, run_activation<F, bf16>},
            {run_activation_grad<F, float>, run_activation_grad<F, bf16>}};
}

/* By enum activation. */
const ActivationRow activations[ACTIVATION_COUNT] = {
    activation_row<Relu>(), activation_row<Gelu>(),    activation_row<GeluTanh>(),
    activation_row<Silu>(), activation_row<Sigmoid>(), activation_row<Tanh>(),
};

struct Add {
    static __device__ float pair(float a, float b)
    {
        return a + b;
    }
};

struct Multiply {
    static __device__ float pair(float a, float b)
    {
        return a * b;
    }
};

template <typename F, typename T> __global__ void fold(const T *a, const T *b, T *out, int64_t n)
{
    for (int64_t i = thread_index(); i < n; i += n_threads())
        put(&out[i], F::pair(widen(a[i]), widen(b[i])));
}

/* Two at a time: the sum so far is read again, but of more than two there are few. */
template <typename F, typename T>
void run_fold(const void *const *in, int n_in, void *out, int64_t n, cudaStream_t stream)
{
    const void *sum = in[0];
    for (int k = 1; k < n_in; k++) {
        LAUNCH((fold<F, T>), blocks_for(n), BLOCK, 0, stream, (const T *)sum, (const T *)in[k],
               (T *)out, n);
        sum = out;
    }
}

} // namespace engine

using namespace engine;

cudaError_t launch_activation(enum activation activation, bool bf16, const void *x, void *y,
                              int64_t n, cudaStream_t stream)
{
    activations[activation].forward[bf16](x, y, n, stream);
    return cudaGetLastError();
}

cudaError_t launch_activation_grad(enum activation activation, bool bf16, const void *saved,
                                   const void *gy, void *gx, int64_t n, cudaStream_t stream)
{
    activations[activation].grad[bf16](saved, gy, gx, n, stream);
    return cudaGetLastError();
}

cudaError_t launch_fold(bool multiply, bool bf16, const void *const *in, int n_in, void *out,
                        int64_t n, cudaStream_t stream)
{
    static void (*const folds[2][2])(const void *const *, int, void *, int64_t, cudaStream_t) = {
        {run_fold<Add, float>, run_fold<Add, engine::bf16>},
        {run_fold<Multiply, float>, run_fold<Multiply, engine::bf16>},
    };
    folds[multiply][bf16](in, n_in, out, n, stream);
    return cudaGetLastError();
}
