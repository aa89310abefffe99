/* array.c: see array.h. */
#include "engine/data/array.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"

static uint8_t be8toh(uint8_t byte)
{
    return byte;
}

static uint8_t le8toh(uint8_t byte)
{
    return byte;
}

/* The element `i` of an array in byte order `order`, as the C type `type` of `bits` bits. */
#define ELEMENT(order, name, type, bits)                                                           \
    static type order##_##name(const uint8_t *from, int64_t i)                                     \
    {                                                                                              \
        uint##bits##_t raw;                                                                        \
        type value;                                                                                \
        memcpy(&raw, from + i * (bits / 8), sizeof raw);                                           \
        raw = order##bits##toh(raw);                                                               \
        memcpy(&value, &raw, sizeof value);                                                        \
        return value;                                                                              \
    }                                                                                              \
    static void order##_##name##_floats(const uint8_t *from, int64_t n, float *to)                 \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (float)order##_##name(from, i);                                                \
    }
#define WHOLE(order, name)                                                                         \
    static void order##_##name##_wholes(const uint8_t *from, int64_t n, int64_t *to)               \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = order##_##name(from, i);                                                       \
    }
#define INTEGER(order, name, bits)                                                                 \
    ELEMENT(order, name, name##_t, bits)                                                           \
    WHOLE(order, name)
#define INTEGER_ROW(order, name, bits)                                                             \
    {                                                                                              \
#name, bits / 8, true, order##_##name##_floats, order##_##name##_wholes                    \
    }
#define FLOAT_ROW(order, name, bits)                                                               \
    {                                                                                              \
#name, bits / 8, false, order##_##name##_floats, NULL                                      \
    }
#define TYPES(order)                                                                               \
    INTEGER(order, uint8, 8)                                                                       \
    INTEGER(order, int8, 8)                                                                        \
    INTEGER(order, uint16, 16)                                                                     \
    INTEGER(order, int16, 16)                                                                      \
    INTEGER(order, uint32, 32)                                                                     \
    INTEGER(order, int32, 32)                                                                      \
    INTEGER(order, int64, 64)                                                                      \
    ELEMENT(order, float32, float, 32)                                                             \
    ELEMENT(order, float64, double, 64)
#define ROWS(order)                                                                                \
    {                                                                                              \
        [ARRAY_UINT8] = INTEGER_ROW(order, uint8, 8), [ARRAY_INT8] = INTEGER_ROW(order, int8, 8),  \
        [ARRAY_UINT16] = INTEGER_ROW(order, uint16, 16),                                           \
        [ARRAY_INT16] = INTEGER_ROW(order, int16, 16),                                             \
        [ARRAY_UINT32] = INTEGER_ROW(order, uint32, 32),                                           \
        [ARRAY_INT32] = INTEGER_ROW(order, int32, 32),                                             \
        [ARRAY_INT64] = INTEGER_ROW(order, int64, 64),                                             \
        [ARRAY_FLOAT32] = FLOAT_ROW(order, float32, 32),                                           \
        [ARRAY_FLOAT64] = FLOAT_ROW(order, float64, 64),                                           \
    }

TYPES(le)
TYPES(be)

const struct array_type array_little[ARRAY_KIND_COUNT] = ROWS(le);
const struct array_type array_big[ARRAY_KIND_COUNT] = ROWS(be);

void array_done(struct array *array)
{
    free(array->heap);
    file_unmap(&array->map);
    *array = (struct array){.data = NULL};
}

int64_t array_count(const struct array *array)
{
    return shape_count(&array->shape) / array->shape.dim[0];
}

const uint8_t *array_sample(const struct array *array, int64_t sample)
{
    return array->data + (size_t)(sample * array_count(array)) * array->type->size;
}

uint64_t array_fingerprint(const struct array *array, uint64_t seed)
{
    /* What is read at once; a mapped file of terabytes must not be read to begin a job. */
    const size_t whole = (size_t)64 << 20, piece = (size_t)16 << 10, pieces = 1024;
    seed = hash64(array->shape.dim, sizeof array->shape.dim[0] * (size_t)array->shape.rank, seed);
    seed = hash64(array->type->name, strlen(array->type->name), seed);
    if (array->bytes <= whole)
        return hash64(array->data, array->bytes, seed);
    for (size_t i = 0; i < pieces; i++) {
        size_t at = (array->bytes - piece) / (pieces - 1) * i;
        seed = hash64(array->data + at, piece, seed);
    }
    return hash64(array->data + array->bytes - piece, piece, seed);
}
