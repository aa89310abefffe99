/* shape.h: sizes of a tensor, outermost first. Plain data, pure functions. */
#ifndef ENGINE_BASE_SHAPE_H
#define ENGINE_BASE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

struct shape {
    int rank; /* 0: a scalar */
    int64_t dim[LIMIT_RANK];
};

#define SHAPE(...)                                                                                 \
    ((struct shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})

/* Elements; -1 where the product does not fit in int64. A scalar has one. */
int64_t shape_count(const struct shape *shape);
bool shape_equal(const struct shape *a, const struct shape *b);
enum { SHAPE_TEXT = 160 }; /* bytes that any shape's text fits in */
/* "[15, 5]", as Python prints a list; returns `buf`. */
const char *shape_format(const struct shape *shape, char buf[static SHAPE_TEXT]);

#endif
