/* memory.h: a device's memory with its size. */
#ifndef ENGINE_PARALLEL_MEMORY_H
#define ENGINE_PARALLEL_MEMORY_H

#include "engine/backend/backend.h"

struct memory {
    void *at; /* NULL: none */
    size_t bytes;
};

/* No memory for no bytes. Errors: ERR_NOMEM, «cpu:1 has no memory for the N bytes of its WHAT». */
int memory_alloc(const struct backend *backend, struct device *device, const char *name,
                 size_t bytes, const char *what, struct memory *ret_memory, struct err *err);
/* What it takes of the device beyond the bytes that are asked for. */
size_t memory_padding(const struct backend *backend, size_t bytes);
/* Writes floats of mixed signs, below `bound` in magnitude, from byte `offset` on; read as BF16
 * they are the same. Memory that was never written is read faster than any other. */
int memory_fill(const struct backend *backend, struct device *device, const struct memory *memory,
                size_t offset, size_t bytes, float bound, struct err *err);
void memory_free(const struct backend *backend, struct device *device, struct memory *memory);

#endif
