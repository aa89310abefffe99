/* liveness.c: the largest interval first, each into the smallest gap among those placed already
 * that are alive with it, else behind them all. Ties are broken by the order given, so equal input
 * gives equal offsets. */
#include "engine/plan/liveness.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static size_t align_up(size_t bytes)
{
    return (bytes + LIVENESS_ALIGN - 1) / LIVENESS_ALIGN * LIVENESS_ALIGN;
}

static bool alive_together(const struct interval *a, const struct interval *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int by_size(const void *a, const void *b)
{
    const struct interval *x = *(struct interval *const *)a, *y = *(struct interval *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x > y) - (x < y); /* both point into the caller's array */
}

/* The offset for `interval` among `placed`, which is ordered by offset. */
static size_t best_fit(const struct interval *interval, struct interval *const *placed, size_t n)
{
    size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        if (!alive_together(interval, placed[i]))
            continue;
        if (placed[i]->offset > end) {
            size_t gap = placed[i]->offset - end;
            if (gap >= interval->bytes && gap < best_gap) {
                best = end;
                best_gap = gap;
            }
        }
        size_t behind = align_up(placed[i]->offset + placed[i]->bytes);
        end = behind > end ? behind : end;
    }
    return best != SIZE_MAX ? best : end;
}

static void insert(struct interval *interval, struct interval **placed, size_t n)
{
    for (; n > 0 && placed[n - 1]->offset > interval->offset; n--)
        placed[n] = placed[n - 1];
    placed[n] = interval;
}

int liveness_assign(struct interval *intervals, size_t n, size_t *ret_bytes, struct err *err)
{
    struct interval **order = calloc(2 * n + 1, sizeof *order);
    if (order == NULL)
        return err_set(err, ERR_NOMEM, "no memory to plan memory");
    struct interval **placed = order + n;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        order[i] = &intervals[i];
    qsort(order, n, sizeof *order, by_size);
    for (size_t i = 0; i < n; i++) {
        order[i]->offset = best_fit(order[i], placed, i);
        insert(order[i], placed, i);
        size_t behind = order[i]->offset + order[i]->bytes;
        bytes = behind > bytes ? behind : bytes;
    }
    free(order);
    *ret_bytes = align_up(bytes);
    return 0;
}
