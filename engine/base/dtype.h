/* dtype.h: element types. */
#ifndef ENGINE_BASE_DTYPE_H
#define ENGINE_BASE_DTYPE_H

#include <stddef.h>

enum dtype {
    DTYPE_F32,
    DTYPE_F64,
    DTYPE_I64,
    DTYPE_U8,
    DTYPE_I8, /* from here on only in files of data */
    DTYPE_I16,
    DTYPE_I32,
    DTYPE_BOOL,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_COUNT
};

size_t dtype_size(enum dtype dtype);      /* bytes */
const char *dtype_name(enum dtype dtype); /* safetensors' names: "F32", "I64" */

#endif
