/* embedding.c: embedding, positional_embedding and select_last, element by element. */
#include <string.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

static void clear(double *data, const struct shape *shape)
{
    memset(data, 0, (size_t)shape_count(shape) * sizeof *data);
}

void ref_embedding(const struct node *node, double *const *in, double *const *out,
                   const struct step *step)
{
    (void)step;
    int64_t e_size = node->in[1]->shape.dim[1];
    for (int64_t i = 0; i < shape_count(&node->out[0]->shape); i++)
        out[0][i] = in[1][(int64_t)in[0][i / e_size] * e_size + i % e_size];
}

void ref_embedding_weight_grad(const struct node *node, double *const *in, double *const *out,
                               const struct step *step)
{
    (void)step;
    const struct embedding_attr *attr = node->attr;
    int64_t e_size = node->out[0]->shape.dim[1];
    clear(out[0], &node->out[0]->shape);
    for (int64_t i = 0; i < shape_count(&node->in[1]->shape); i++)
        if ((int64_t)in[0][i / e_size] != attr->padding_row)
            out[0][(int64_t)in[0][i / e_size] * e_size + i % e_size] += in[1][i];
}

void ref_positional_embedding(const struct node *node, double *const *in, double *const *out,
                              const struct step *step)
{
    (void)step;
    const struct shape *x = &node->in[0]->shape;
    for (int64_t i = 0; i < shape_count(x); i++)
        out[0][i] = in[0][i] + in[1][i % (x->dim[1] * x->dim[2])];
}

void ref_positional_embedding_weight_grad(const struct node *node, double *const *in,
                                          double *const *out, const struct step *step)
{
    (void)step;
    const struct shape *gy = &node->in[0]->shape;
    clear(out[0], &node->out[0]->shape);
    for (int64_t i = 0; i < shape_count(gy); i++)
        out[0][i % (gy->dim[1] * gy->dim[2])] += in[0][i];
}

/* The position in x [N, T, …] of element i of y [N, …]. */
static int64_t selected(const struct shape *x, const double *lengths, int64_t i)
{
    int64_t size = shape_count(x) / x->dim[0] / x->dim[1], n = i / size;
    int64_t last = lengths ? (int64_t)lengths[n] - 1 : x->dim[1] - 1;
    return (n * x->dim[1] + last) * size + i % size;
}

void ref_select_last(const struct node *node, double *const *in, double *const *out,
                     const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->out[0]->shape); i++)
        out[0][i] = in[0][selected(&node->in[0]->shape, in[1], i)];
}

void ref_select_last_grad(const struct node *node, double *const *in, double *const *out,
                          const struct step *step)
{
    (void)step;
    clear(out[0], &node->out[0]->shape);
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++)
        out[0][selected(&node->out[0]->shape, in[1], i)] = in[0][i];
}
