/* tree.c: see tree.h: a stack of sums, each a power of two of leaves, the largest first, as a
 * binary counter's digits. */
#include "engine/comm/tree.h"

#include <assert.h>
#include <string.h>

#include "engine/base/team.h"

enum { GRAIN = 16384 };

bool tree_joins(const struct term *left, const struct term *right)
{
    int size = left->end - left->first;
    return size == right->end - right->first && left->first % (2 * size) == 0;
}

static void add(float *to, const float *from, size_t n)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

void tree_sum(const struct term *terms, int n_terms, size_t at, size_t n, float *ret_sum)
{
    float block[TREE_MAX_DEPTH][TREE_BLOCK];
    struct term stack[TREE_MAX_DEPTH];
    int depth = 0;
    for (int t = 0; t < n_terms; t++) {
        struct term next = {terms[t].data + at, terms[t].first, terms[t].end};
        while (depth > 0 && tree_joins(&stack[depth - 1], &next)) {
            depth--;
            add(block[depth], next.data, n);
            next = (struct term){block[depth], stack[depth].first, next.end};
        }
        assert(depth < TREE_MAX_DEPTH);
        if (next.data != block[depth])
            memcpy(block[depth], next.data, n * sizeof(float));
        next.data = block[depth];
        stack[depth++] = next;
    }
    for (; depth > 1; depth--)
        add(block[depth - 2], block[depth - 1], n);
    memcpy(ret_sum, block[0], n * sizeof(float));
}

struct addition {
    float *to;
    const float *from;
};

static void add_span(int64_t begin, int64_t end, void *context)
{
    const struct addition *addition = context;
    add(addition->to + begin, addition->from + begin, (size_t)(end - begin));
}

void tree_add(float *to, const float *from, size_t count)
{
    struct addition addition = {to, from};
    team_for((int64_t)count, GRAIN, add_span, &addition);
}
