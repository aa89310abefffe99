/* tree.h: one order of addition for any number of terms, whoever has them: PURE.
 *
 * Terms 0, 1, 2, … are the leaves. A sum over [k 2^i, (k + 1) 2^i) is that of its two halves; where
 * the number of terms is no power of two, what is left over at the right is added to the left, from
 * the right. A part of the leaves is summed to as few sums as it has whole nodes: nobody has to
 * know the others' to get the same bits.
 */
#ifndef ENGINE_COMM_TREE_H
#define ENGINE_COMM_TREE_H

#include <stdbool.h>
#include <stddef.h>

/* The sum over the terms first … end - 1. */
struct term {
    const float *data;
    int first, end;
};

/* Whether `right`, which is the next behind `left`, is the other half of one node. */
bool tree_joins(const struct term *left, const struct term *right);

enum { TREE_MAX_DEPTH = 8, TREE_BLOCK = 1024 /* floats that stay in the first-level cache */ };

/* The sum of all terms, in their order from 0 on, of elements at … at + n - 1 (n <= TREE_BLOCK),
 * `ret_sum` its n elements. At most 2^(TREE_MAX_DEPTH - 1) leaves. */
void tree_sum(const struct term *terms, int n_terms, size_t at, size_t n, float *ret_sum);

/* to += from, on the calling thread's team. */
void tree_add(float *to, const float *from, size_t count);

#endif
