/* hash.c: XXH64: four lanes over blocks of 32 bytes, merged, then the rest, then an avalanche. */
#include "engine/base/hash.h"

#include <endian.h>
#include <string.h>

#define PRIME1 0x9E3779B185EBCA87u
#define PRIME2 0xC2B2AE3D27D4EB4Fu
#define PRIME3 0x165667B19E3779F9u
#define PRIME4 0x85EBCA77C2B2AE63u
#define PRIME5 0x27D4EB2F165667C5u

static uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static uint64_t word64(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return le64toh(word);
}

static uint64_t word32(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return le32toh(word);
}

static uint64_t mix(uint64_t lane, uint64_t word)
{
    return rotate(lane + word * PRIME2, 31) * PRIME1;
}

static uint64_t merge(uint64_t hash, uint64_t lane)
{
    return (hash ^ mix(0, lane)) * PRIME1 + PRIME4;
}

/* Whole blocks of 32 bytes in four lanes; `*p` is moved behind them. */
static uint64_t blocks(const uint8_t **p, const uint8_t *end, uint64_t seed)
{
    uint64_t lane[4] = {seed + PRIME1 + PRIME2, seed + PRIME2, seed, seed - PRIME1};
    for (; end - *p >= 32; *p += 32)
        for (int i = 0; i < 4; i++)
            lane[i] = mix(lane[i], word64(*p + 8 * i));
    uint64_t hash =
        rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (int i = 0; i < 4; i++)
        hash = merge(hash, lane[i]);
    return hash;
}

static uint64_t tail(const uint8_t *p, const uint8_t *end, uint64_t hash)
{
    for (; end - p >= 8; p += 8)
        hash = rotate(hash ^ mix(0, word64(p)), 27) * PRIME1 + PRIME4;
    for (; end - p >= 4; p += 4)
        hash = rotate(hash ^ (word32(p) * PRIME1), 23) * PRIME2 + PRIME3;
    for (; p < end; p++)
        hash = rotate(hash ^ (*p * PRIME5), 11) * PRIME1;
    return hash;
}

uint64_t hash64(const void *data, size_t bytes, uint64_t seed)
{
    if (bytes == 0)
        data = "";
    const uint8_t *p = data, *end = p + bytes;
    uint64_t hash = bytes >= 32 ? blocks(&p, end, seed) : seed + PRIME5;
    hash = tail(p, end, hash + bytes);
    hash = (hash ^ (hash >> 33)) * PRIME2;
    hash = (hash ^ (hash >> 29)) * PRIME3;
    return hash ^ (hash >> 32);
}
