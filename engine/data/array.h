/* array.h: an array of samples as a file has it: in memory, or mapped and never read whole.
 *
 * Elements stay as the file has them and are turned when a sample is read. Once open an array is
 * immutable; any thread may read it.
 */
#ifndef ENGINE_DATA_ARRAY_H
#define ENGINE_DATA_ARRAY_H

#include "engine/base/file.h"
#include "engine/base/shape.h"
#include "proto/err.h"

struct array_type {
    const char *name; /* "uint8" */
    size_t size;      /* bytes */
    bool integer;
    void (*floats)(const uint8_t *from, int64_t n, float *to);
    void (*wholes)(const uint8_t *from, int64_t n, int64_t *to); /* NULL for floating point */
};

/* By enum array_kind; little-endian and big-endian. */
enum array_kind {
    ARRAY_UINT8,
    ARRAY_INT8,
    ARRAY_UINT16,
    ARRAY_INT16,
    ARRAY_UINT32,
    ARRAY_INT32,
    ARRAY_INT64,
    ARRAY_FLOAT32,
    ARRAY_FLOAT64,
    ARRAY_KIND_COUNT
};
extern const struct array_type array_little[ARRAY_KIND_COUNT], array_big[ARRAY_KIND_COUNT];

struct array {
    struct shape shape; /* rank >= 1, every dimension >= 1; the first counts samples */
    const struct array_type *type;
    const uint8_t *data;
    size_t bytes;
    void *heap; /* what holds the elements: memory of malloc, or a map, or neither: another's */
    struct file_map map;
};

void array_done(struct array *array);
/* Elements of one sample. */
int64_t array_count(const struct array *array);
const uint8_t *array_sample(const struct array *array, int64_t sample);
/* Tells arrays apart: shape, type and elements; of a large one, evenly spaced pieces of them. */
uint64_t array_fingerprint(const struct array *array, uint64_t seed);

#endif
