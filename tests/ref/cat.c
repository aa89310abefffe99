/* cat.c: cat and slice: every element by its index in each dimension. */
#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

/* The position in `whole` of element i of `part`, which begins at index `begin` of `dim`. */
static int64_t position(const struct shape *whole, const struct shape *part, int64_t i,
                        const struct slice_attr *at)
{
    int64_t index[LIMIT_RANK], to = 0;
    for (int k = part->rank - 1; k >= 0; k--) {
        index[k] = i % part->dim[k];
        i /= part->dim[k];
    }
    index[at->dim] += at->begin;
    for (int k = 0; k < whole->rank; k++)
        to = to * whole->dim[k] + index[k];
    return to;
}

void ref_cat(const struct node *node, double *const *in, double *const *out,
             const struct step *step)
{
    (void)step;
    const struct cat_attr *attr = node->attr;
    for (int k = 0; k < node->n_in; k++)
        for (int64_t i = 0; i < shape_count(&node->in[k]->shape); i++)
            out[0][position(&node->out[0]->shape, &node->in[k]->shape, i, &attr->part[k])] =
                in[k][i];
}

void ref_slice(const struct node *node, double *const *in, double *const *out,
               const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->out[0]->shape); i++)
        out[0][i] = in[0][position(&node->in[0]->shape, &node->out[0]->shape, i, node->attr)];
}
