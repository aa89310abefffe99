/* attention.cu: see attention.h. A block is a query. The mask is the CPU's: four neighbouring
 * elements of [head, query, key] share a Philox block. */
#include "engine/backend/cuda/attention.h"
#include "engine/backend/cuda/philox.cuh"
#include "engine/backend/cuda/real.cuh"

namespace engine
{

/* A query, by the block. */
struct Query {
    int64_t sample, at, visible;
    RngKey key;
};

__device__ inline Query query_of(const attention_launch &a, const device_step *step)
{
    int64_t at = blockIdx.x % a.steps;
    RngKey key = {{0, 0}};
    if (a.threshold > 0)
        key = rng_subkey({{a.layer_key[0], a.layer_key[1]}}, (uint64_t)step->number);
    return {blockIdx.x / a.steps, at, a.causal ? at + 1 : a.steps, key};
}

/* What the weight of key k is multiplied by. */
__device__ inline float factor_of(const attention_launch &a, const Query &q, int64_t k,
                                  const device_step *step)
{
    if (a.threshold == 0)
        return 1;
    uint64_t element = (uint64_t)((a.head * a.steps + q.at) * a.steps + k);
    RngBlock random = rng_block(q.key, (uint64_t)(step->first_sample + q.sample), element / 4);
    return random.word[element % 4] >> 8 >= a.threshold ? a.kept : 0;
}

template <typename T>
__global__ void attention_softmax(attention_launch a, const float *products, T *weights, float *lse,
                                  const device_step *step)
{
    __shared__ float room[BLOCK];
    Query q = query_of(a, step);
    int64_t begin = (int64_t)blockIdx.x * a.steps;
    float most = -INFINITY, sum = 0;
    for (int64_t k = threadIdx.x; k < q.visible; k += blockDim.x)
        most = Largest()(most, products[begin + k]);
    most = block_reduce(most, room, Largest());
    for (int64_t k = threadIdx.x; k < q.visible; k += blockDim.x)
        sum += expf(products[begin + k] - most);
    sum = block_reduce(sum, room, Sum());
    for (int64_t k = threadIdx.x; k < a.steps; k += blockDim.x) {
        float weight = k < q.visible ? expf(products[begin + k] - most) / sum : 0;
        put(&weights[begin + k], weight > 0 ? weight * factor_of(a, q, k, step) : weight);
    }
    if (threadIdx.x == 0 && lse != nullptr)
        lse[(q.sample * a.heads + a.head) * a.steps + q.at] = most + logf(sum);
}

template <typename T>
__global__ void attention_grad(attention_launch a, const float *products, const float *grads,
                               const float *lse, T *weights, T *product_grads,
                               const device_step *step)
{
    __shared__ float room[BLOCK];
    Query q = query_of(a, step);
    int64_t begin = (int64_t)blockIdx.x * a.steps;
    float divisor = lse[(q.sample * a.heads + a.head) * a.steps + q.at], delta = 0;
    for (int64_t k = threadIdx.x; k < q.visible; k += blockDim.x)
        delta += expf(products[begin + k] - divisor) * factor_of(a, q, k, step) * grads[begin + k];
    delta = block_reduce(delta, room, Sum());
    for (int64_t k = threadIdx.x; k < a.steps; k += blockDim.x) {
        bool seen = k < q.visible;
        float weight = seen ? expf(products[begin + k] - divisor) : 0;
        float factor = seen ? factor_of(a, q, k, step) : 0;
        float grad = seen ? a.scale * weight * (factor * grads[begin + k] - delta) : 0;
        put(&weights[begin + k], weight * factor);
        put(&product_grads[begin + k], grad);
    }
}

template <typename T>
void run_softmax(const attention_launch *a, const float *products, void *weights, float *lse,
                 const device_step *step, cudaStream_t stream)
{
    LAUNCH(attention_softmax<T>, (unsigned)(a->samples * a->steps), threads_for(a->steps), 0,
           stream, *a, products, (T *)weights, lse, step);
}

template <typename T>
void run_grad(const attention_launch *a, const float *products, const float *grads,
              const float *lse, void *weights, void *product_grads, const device_step *step,
              cudaStream_t stream)
{
    LAUNCH(attention_grad<T>, (unsigned)(a->samples * a->steps), threads_for(a->steps), 0, stream,
           *a, products, grads, lse, (T *)weights, (T *)product_grads, step);
}

} // namespace engine

using namespace engine;

cudaError_t launch_attention_softmax(bool bf16, const struct attention_launch *attention,
                                     const float *products, void *weights, float *lse,
                                     const struct device_step *step, cudaStream_t stream)
{
    (bf16 ? run_softmax<engine::bf16> : run_softmax<float>)(attention, products, weights, lse, step,
                                                            stream);
    return cudaGetLastError();
}

cudaError_t launch_attention_grad(bool bf16, const struct attention_launch *attention,
                                  const float *products, const float *grads, const float *lse,
                                  void *weights, void *product_grads,
                                  const struct device_step *step, cudaStream_t stream)
{
    (bf16 ? run_grad<engine::bf16> : run_grad<float>)(attention, products, grads, lse, weights,
                                                      product_grads, step, stream);
    return cudaGetLastError();
}
