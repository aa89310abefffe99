#include "engine/base/shape.h"

#include <inttypes.h>
#include <stdio.h>

int64_t shape_count(const struct shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        if (__builtin_mul_overflow(count, shape->dim[i], &count))
            return -1;
    return count;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

const char *shape_format(const struct shape *shape, char buf[static SHAPE_TEXT])
{
    int length = snprintf(buf, SHAPE_TEXT, "[");
    for (int i = 0; i < shape->rank; i++)
        length += snprintf(buf + length, (size_t)(SHAPE_TEXT - length), "%s%" PRId64,
                           i == 0 ? "" : ", ", shape->dim[i]);
    snprintf(buf + length, (size_t)(SHAPE_TEXT - length), "]");
    return buf;
}
