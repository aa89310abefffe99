/* hash.h: a fast 64-bit hash that tells data apart and finds damage. Not for secrets.
 *
 * XXH64 (Yann Collet, xxHash specification 0.1.1), over little-endian words. Pure; any thread.
 */
#ifndef ENGINE_BASE_HASH_H
#define ENGINE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Several pieces are hashed in a row by giving each the hash of those before it as its seed. */
uint64_t hash64(const void *data, size_t bytes, uint64_t seed);

#endif
