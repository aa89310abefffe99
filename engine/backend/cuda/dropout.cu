/* dropout.cu: torch.nn.Dropout in training, and its gradient, which is the same map. Four
 * neighbouring elements of a sample, row-major, share a Philox block: a thread. */
#include "engine/backend/cuda/philox.cuh"
#include "engine/backend/cuda/real.cuh"

namespace engine
{

/* Where element e, row-major, of a sample lies. */
__device__ inline int64_t element_offset(const dropout_launch &d, int64_t e)
{
    if (d.channels == 0)
        return e;
    int64_t pixels = d.count / d.channels;
    return e % pixels * d.channels + e / pixels;
}

template <typename T>
__global__ void dropout(const T *x, T *y, dropout_launch d, const device_step *step)
{
    RngKey layer = {{d.layer_key[0], d.layer_key[1]}};
    RngKey key = rng_subkey(layer, (uint64_t)step->number);
    int64_t blocks = (d.count + 3) / 4;
    for (int64_t i = thread_index(); i < d.samples * blocks; i += n_threads()) {
        int64_t sample = i / blocks, block = i % blocks;
        RngBlock random = rng_block(key, (uint64_t)(step->first_sample + sample), (uint64_t)block);
        for (int k = 0; k < 4 && block * 4 + k < d.count; k++) {
            int64_t at = sample * d.count + element_offset(d, block * 4 + k);
            bool keep = random.word[k] >> 8 >= d.threshold; /* rng_uniform >= p */
            put(&y[at], widen(x[at]) * (keep ? d.factor : 0));
        }
    }
}

template <typename T>
void run_dropout(const void *x, void *y, const dropout_launch *d, const device_step *step,
                 cudaStream_t stream)
{
    LAUNCH(dropout<T>, blocks_for(d->samples * ((d->count + 3) / 4)), BLOCK, 0, stream,
           (const T *)x, (T *)y, *d, step);
}

} // namespace engine

using namespace engine;

cudaError_t launch_dropout(bool bf16, const void *x, void *y, const struct dropout_launch *dropout,
                           const struct device_step *step, cudaStream_t stream)
{
    if (bf16)
        run_dropout<engine::bf16>(x, y, dropout, step, stream);
    else
        run_dropout<float>(x, y, dropout, step, stream);
    return cudaGetLastError();
}
