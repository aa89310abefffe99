/* safetensors.h: reading and writing of .safetensors files, with every rule of the reference
 * reader: header ≤ 100 MB, UTF-8, one object, offsets contiguous from 0 without holes or overlap,
 * sizes checked without overflow, file length exact, duplicates refused, integers only. The file is
 * mapped, not copied. */
#ifndef ENGINE_BASE_SAFETENSORS_H
#define ENGINE_BASE_SAFETENSORS_H

#include <jansson.h>

#include "engine/base/dtype.h"
#include "engine/base/shape.h"
#include "proto/err.h"

struct safetensor {
    const char *name;
    struct shape shape;
    enum dtype dtype;
    const void *data; /* little-endian, plain, at any address: a file need not align it */
    size_t bytes;
};

struct safetensors;

/* Errors: ERR_IO, ERR_NOMEM, ERR_WEIGHTS_INVALID naming path and value. */
int safetensors_open(const char *path, struct safetensors **ret_file, struct err *err);
void safetensors_close(struct safetensors *file);
size_t safetensors_count(const struct safetensors *file);
const struct safetensor *safetensors_at(const struct safetensors *file,
                                        size_t i); /* in the file's order */
const struct safetensor *safetensors_find(const struct safetensors *file,
                                          const char *name); /* or NULL */
/* __metadata__, an object of strings, borrowed; NULL: there is none. */
const json_t *safetensors_all_metadata(const struct safetensors *file);
/* A string of it, or NULL. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);

/* Writes `path` (created or truncated), fsyncs it. `metadata`: an object of strings, or NULL. */
int safetensors_write(const char *path, const struct safetensor *tensors, size_t n,
                      const json_t *metadata, struct err *err);

#endif
