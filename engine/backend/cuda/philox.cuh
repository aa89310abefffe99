/* philox.cuh: base/rng.h on a GPU: the same numbers at the same addresses. */
#ifndef ENGINE_BACKEND_CUDA_PHILOX_CUH
#define ENGINE_BACKEND_CUDA_PHILOX_CUH

#include "engine/backend/cuda/launch.h"

#include <stdint.h>

namespace engine
{

struct RngKey {
    uint32_t word[2];
};

struct RngBlock {
    uint32_t word[4];
};

/* Philox4x32-10 (Salmon et al., SC 2011). */
__device__ inline RngBlock philox(RngBlock c, RngKey key)
{
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c.word[0], p1 = (uint64_t)0xCD9E8D57u * c.word[2];
        c = {{(uint32_t)(p1 >> 32) ^ c.word[1] ^ key.word[0], (uint32_t)p1,
              (uint32_t)(p0 >> 32) ^ c.word[3] ^ key.word[1], (uint32_t)p0}};
        key.word[0] += 0x9E3779B9u;
        key.word[1] += 0xBB67AE85u;
    }
    return c;
}

__device__ inline RngKey rng_subkey(RngKey key, uint64_t stream)
{
    RngBlock block =
        philox({{(uint32_t)stream, (uint32_t)(stream >> 32), 0xffffffffu, 0xffffffffu}}, key);
    return {{block.word[0], block.word[1]}};
}

__device__ inline RngBlock rng_block(RngKey key, uint64_t sample, uint64_t block)
{
    return philox(
        {{(uint32_t)sample, (uint32_t)(sample >> 32), (uint32_t)block, (uint32_t)(block >> 32)}},
        key);
}

} // namespace engine

#endif
