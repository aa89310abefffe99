/* ref.h: every op once more, as its definition: naive loops in double on row-major arrays.
 *
 * What a backend's kernels are compared with. Written from PyTorch's documentation, sharing nothing
 * with any backend; check_ref proves the gradients by finite differences.
 */
#ifndef TESTS_REF_REF_H
#define TESTS_REF_REF_H

#include "engine/backend/backend.h"

/* in[i], out[i]: the node's values as doubles (class numbers too); NULL where absent. What an op
 * mutates is written in `in`. Two conventions where a backend has freedom: batch_norm's spread is
 * the biased variance; max_pool2d's workspace is the largest input's index in its plane. */
typedef void ref_function(const struct node *node, double *const *in, double *const *out,
                          const struct step *step);

ref_function *ref_find(const char *op); /* NULL: no such op */

#define REF(op) ref_function ref_##op;
#include "tests/ref/ref.def"
#undef REF

/* Row-major position in a tensor of rank 4. */
static inline int64_t ref_at(const struct shape *s, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return ((n * s->dim[1] + c) * s->dim[2] + h) * s->dim[3] + w;
}

#endif
