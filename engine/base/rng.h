/* rng.h: randomness as a function, never a stream with a position.
 *
 * Philox4x32-10 (Salmon et al., SC 2011). A key is derived from (seed, purpose, stream); a number
 * is addressed by (key, sample, block). Whoever asks for the same address gets the same number, on
 * any device, in any order, after any resume. Pure; any thread.
 */
#ifndef ENGINE_BASE_RNG_H
#define ENGINE_BASE_RNG_H

#include <stdint.h>

enum rng_purpose { RNG_INIT = 1, RNG_SHUFFLE = 2, RNG_DROPOUT = 3, RNG_DATA = 4, RNG_AUGMENT = 5 };

struct rng_key {
    uint32_t word[2];
};

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t ret[4]);

struct rng_key rng_key(uint64_t seed, enum rng_purpose purpose, uint64_t stream);
/* A key below a key: of a layer, then of a step, … */
struct rng_key rng_subkey(struct rng_key key, uint64_t stream);
/* Four words for (sample, block). */
void rng_block(struct rng_key key, uint64_t sample, uint64_t block, uint32_t ret[4]);

float rng_uniform(uint32_t word);                      /* [0, 1), 24 bits */
void rng_normal(uint32_t a, uint32_t b, float ret[2]); /* Box-Muller, in double, rounded once */

#endif
