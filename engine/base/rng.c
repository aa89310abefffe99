/* rng.c: Philox4x32-10. Constants and rounds are those of Random123 (D. E. Shaw Research), whose
 * known answers the tests repeat. */
#include "engine/base/rng.h"

#include <math.h>

enum { PHILOX_ROUNDS = 10 };
static const uint32_t philox_multiplier[2] = {0xD2511F53u, 0xCD9E8D57u};
static const uint32_t philox_weyl[2] = {0x9E3779B9u, 0xBB67AE85u};

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t ret[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)philox_multiplier[0] * c0;
        uint64_t p1 = (uint64_t)philox_multiplier[1] * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += philox_weyl[0];
        k1 += philox_weyl[1];
    }
    ret[0] = c0;
    ret[1] = c1;
    ret[2] = c2;
    ret[3] = c3;
}

/* The key's two words are half of a block, so keys of different addresses are as independent as
 * the numbers themselves. */
static struct rng_key key_of_block(const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t word[4];
    philox4x32(counter, key, word);
    return (struct rng_key){{word[0], word[1]}};
}

struct rng_key rng_key(uint64_t seed, enum rng_purpose purpose, uint64_t stream)
{
    const uint32_t counter[4] = {(uint32_t)stream, (uint32_t)(stream >> 32), (uint32_t)purpose, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    return key_of_block(counter, key);
}

struct rng_key rng_subkey(struct rng_key key, uint64_t stream)
{
    /* The last block of a sample: rng_block's callers count from 0 and never come there. */
    const uint32_t counter[4] = {(uint32_t)stream, (uint32_t)(stream >> 32), UINT32_MAX,
                                 UINT32_MAX};
    return key_of_block(counter, key.word);
}

void rng_block(struct rng_key key, uint64_t sample, uint64_t block, uint32_t ret[4])
{
    const uint32_t counter[4] = {(uint32_t)sample, (uint32_t)(sample >> 32), (uint32_t)block,
                                 (uint32_t)(block >> 32)};
    philox4x32(counter, key.word, ret);
}

float rng_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

void rng_normal(uint32_t a, uint32_t b, float ret[2])
{
    double u = ((double)a + 1.0) * 0x1p-32; /* (0, 1]: its logarithm is finite */
    double angle = 2.0 * 3.14159265358979323846 * ((double)b * 0x1p-32);
    double radius = sqrt(-2.0 * log(u));
    ret[0] = (float)(radius * cos(angle));
    ret[1] = (float)(radius * sin(angle));
}
