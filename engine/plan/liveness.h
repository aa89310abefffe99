/* liveness.h: offsets for intervals: PURE. */
#ifndef ENGINE_PLAN_LIVENESS_H
#define ENGINE_PLAN_LIVENESS_H

#include <stddef.h>

#include "proto/err.h"

enum { LIVENESS_ALIGN = 64 };

/* A buffer that is written at step `first` and read last at step `last`. */
struct interval {
    int first, last;
    size_t bytes;
    size_t offset; /* the result */
};

/* Gives each interval an offset (multiple of LIVENESS_ALIGN) such that two that are alive together
 * do not overlap; greedy by size, best fit. *ret_bytes: the arena. Errors: ERR_NOMEM. */
int liveness_assign(struct interval *intervals, size_t n, size_t *ret_bytes, struct err *err);

#endif
