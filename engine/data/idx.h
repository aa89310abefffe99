/* idx.h: IDX files, the format of MNIST: http://yann.lecun.com/exdb/mnist, plain or gz.
 *
 * Two zero bytes, the element type, the rank, one big-endian uint32 a dimension, the elements,
 * nothing more. The elements are kept as the file has them and turned when they are read.
 */
#ifndef ENGINE_DATA_IDX_H
#define ENGINE_DATA_IDX_H

#include "engine/base/shape.h"
#include "proto/err.h"

struct idx_type {
    int code;
    const char *name; /* "uint8" */
    size_t size;      /* bytes */
    bool integer;
    void (*floats)(const uint8_t *from, int64_t n, float *to);
    int64_t (*whole)(const uint8_t *from); /* one element; NULL for floating point */
};

struct idx {
    struct shape shape; /* rank >= 1, every dimension >= 1 */
    const struct idx_type *type;
    uint8_t *data;
    size_t bytes;
};

/* Reads a file whole. The memory asked for is bounded by what a file of its size can hold. Errors:
 * ERR_IO; ERR_DATA_INVALID naming path, what was found and what is wanted; ERR_NOMEM. */
int idx_read(const char *path, struct idx *ret_idx, struct err *err);
void idx_done(struct idx *idx);

#endif
