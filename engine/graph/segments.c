/* segments.c: for falling bounds on a segment's size the cheapest cuts, by dynamic programming with
 * a sliding minimum; then the best of the bounds. */
#include "engine/graph/segments.h"

#include <stdlib.h>

enum { STEPS = 1024 }; /* bounds that are tried at most, from the whole chain down */

struct chooser {
    struct segment_layer *layers;
    size_t n;
    int64_t *before; /* before[i]: inner bytes of the layers ahead of layer i */
    int64_t *kept;   /* kept[i]: the fewest bytes kept at cuts when a segment begins at layer i */
    size_t *from;    /* where the segment ahead of it begins */
    size_t *window;  /* begins within reach, their `kept` rising */
};

static int64_t weight(const struct chooser *chooser, size_t begin, size_t end)
{
    return chooser->before[end] - chooser->before[begin];
}

/* Cuts such that no segment is above `bound` unless it is a single layer. Returns the largest. */
static int64_t solve(struct chooser *chooser, int64_t bound)
{
    size_t head = 0, tail = 0, n = chooser->n;
    for (size_t i = 0; i <= n; i++) {
        while (head < tail && chooser->window[head] + 1 < i &&
               weight(chooser, chooser->window[head], i) > bound)
            head++;
        int64_t cross = i > 0 && i < n ? chooser->layers[i - 1].cross_bytes : 0;
        chooser->from[i] = i == 0 ? 0 : chooser->window[head];
        chooser->kept[i] = i == 0 ? 0 : chooser->kept[chooser->from[i]] + cross;
        while (tail > head && chooser->kept[chooser->window[tail - 1]] >= chooser->kept[i])
            tail--;
        chooser->window[tail++] = i;
    }
    int64_t largest = 0;
    for (size_t i = n; i > 0; i = chooser->from[i])
        if (weight(chooser, chooser->from[i], i) > largest)
            largest = weight(chooser, chooser->from[i], i);
    return largest;
}

static void mark(struct chooser *chooser)
{
    for (size_t i = chooser->from[chooser->n]; i > 0; i = chooser->from[i])
        chooser->layers[i - 1].end = true;
}

/* Each bound lies below the largest segment of the one before: for short chains all that matter are
 * tried, for long ones a thousand. */
static void choose(struct chooser *chooser)
{
    int64_t best = INT64_MAX, best_bound = 0;
    for (size_t i = 0; i < chooser->n; i++)
        chooser->before[i + 1] = chooser->before[i] + chooser->layers[i].inner_bytes;
    int64_t total = chooser->before[chooser->n], bound = total;
    for (int step = 0; step < STEPS && bound >= 0; step++) {
        int64_t largest = solve(chooser, bound);
        int64_t cost = chooser->kept[chooser->n] + largest;
        if (cost < best) {
            best = cost;
            best_bound = bound;
        }
        int64_t below = bound - total / STEPS;
        bound = (largest < below ? largest : below) - 1;
    }
    solve(chooser, best_bound);
    mark(chooser);
}

int segments_choose(struct segment_layer *layers, size_t n, struct err *err)
{
    struct chooser chooser = {
        .layers = layers,
        .n = n,
        .before = calloc(n + 1, sizeof *chooser.before),
        .kept = calloc(n + 1, sizeof *chooser.kept),
        .from = calloc(n + 1, sizeof *chooser.from),
        .window = calloc(n + 1, sizeof *chooser.window),
    };
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        layers[i].end = false;
    if (chooser.before == NULL || chooser.kept == NULL || chooser.from == NULL ||
        chooser.window == NULL)
        rc = err_set(err, ERR_NOMEM, "no memory to choose segments");
    else if (n > 0)
        choose(&chooser);
    free(chooser.before);
    free(chooser.kept);
    free(chooser.from);
    free(chooser.window);
    return rc;
}
