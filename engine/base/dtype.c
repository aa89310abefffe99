#include "engine/base/dtype.h"

#include <stdint.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[DTYPE_COUNT] = {
    [DTYPE_F32] = {"F32", sizeof(float)},
    [DTYPE_F64] = {"F64", sizeof(double)},
    [DTYPE_I64] = {"I64", sizeof(int64_t)},
    [DTYPE_U8] = {"U8", 1},
    [DTYPE_I8] = {"I8", 1},
    [DTYPE_I16] = {"I16", 2},
    [DTYPE_I32] = {"I32", 4},
    [DTYPE_BOOL] = {"BOOL", 1},
    [DTYPE_F16] = {"F16", 2},
    [DTYPE_BF16] = {"BF16", 2},
};

size_t dtype_size(enum dtype dtype)
{
    return dtypes[dtype].size;
}

const char *dtype_name(enum dtype dtype)
{
    return dtypes[dtype].name;
}
