/* pool.c: max_pool2d (PyTorch's: NaN before any number, the first of equals) and
 * adaptive_avg_pool2d. */
#include <math.h>
#include <string.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

/* Whether window `o` of dimension i has an element at input `at`. */
static bool in_window(const struct max_pool2d_attr *a, int i, int64_t o, int64_t at)
{
    int64_t from_start = at - (o * a->stride[i] - a->padding[i]);
    return from_start >= 0 && from_start % a->dilation[i] == 0 &&
           from_start / a->dilation[i] < a->kernel_size[i];
}

/* The index of a window's largest value in its plane; -1: dilation steps over the whole plane. */
static int64_t largest(const struct max_pool2d_attr *a, const double *plane, int64_t height,
                       int64_t width, int64_t oh, int64_t ow)
{
    int64_t best = -1;
    for (int64_t h = 0; h < height; h++)
        for (int64_t w = 0; w < width; w++) {
            int64_t i = h * width + w;
            if (!in_window(a, 0, oh, h) || !in_window(a, 1, ow, w))
                continue;
            if (best < 0 || plane[i] > plane[best] || isnan(plane[i]))
                best = i;
        }
    return best;
}

void ref_max_pool2d(const struct node *node, double *const *in, double *const *out,
                    const struct step *step)
{
    (void)step;
    const struct shape *x = &node->in[0]->shape, *y = &node->out[0]->shape;
    for (int64_t i = 0; i < shape_count(y); i++) {
        int64_t p = i / (y->dim[2] * y->dim[3]);
        const double *plane = in[0] + p * x->dim[2] * x->dim[3];
        int64_t best = largest(node->attr, plane, x->dim[2], x->dim[3], i / y->dim[3] % y->dim[2],
                               i % y->dim[3]);
        out[0][i] = best < 0 ? -INFINITY : plane[best];
        if (out[1])
            out[1][i] = (double)best;
    }
}

void ref_max_pool2d_grad(const struct node *node, double *const *in, double *const *out,
                         const struct step *step)
{
    (void)step;
    const struct shape *x = &node->out[0]->shape, *y = &node->in[0]->shape;
    memset(out[0], 0, (size_t)shape_count(x) * sizeof(double));
    for (int64_t i = 0; i < shape_count(y); i++) {
        int64_t p = i / (y->dim[2] * y->dim[3]);
        if (in[1][i] < 0)
            continue;
        out[0][p * x->dim[2] * x->dim[3] + (int64_t)in[1][i]] += in[0][i];
    }
}

/* Whether input i of n_in belongs to output o of n_out. */
static bool in_bin(int64_t i, int64_t o, int64_t n_in, int64_t n_out)
{
    double ratio = (double)n_in / (double)n_out;
    return (double)i >= floor((double)o * ratio + 1e-9) &&
           (double)i < ceil((double)(o + 1) * ratio - 1e-9);
}

/* Calls visit(x, y) with the positions of each input and output that belong together. */
static void for_each_pair(const struct shape *x, const struct shape *y,
                          void (*visit)(int64_t x, int64_t y, void *context), void *context)
{
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t c = 0; c < x->dim[1]; c++)
            for (int64_t h = 0; h < x->dim[2]; h++)
                for (int64_t w = 0; w < x->dim[3]; w++)
                    for (int64_t oh = 0; oh < y->dim[2]; oh++)
                        for (int64_t ow = 0; ow < y->dim[3]; ow++)
                            if (in_bin(h, oh, x->dim[2], y->dim[2]) &&
                                in_bin(w, ow, x->dim[3], y->dim[3]))
                                visit(ref_at(x, n, c, h, w), ref_at(y, n, c, oh, ow), context);
}

struct average {
    double *x, *y;
    double *members; /* of an output's bin */
};

static void count_member(int64_t x, int64_t y, void *context)
{
    (void)x;
    ((struct average *)context)->members[y] += 1;
}

static void add_to_output(int64_t x, int64_t y, void *context)
{
    struct average *a = context;
    a->y[y] += a->x[x] / a->members[y];
}

static void add_to_input(int64_t x, int64_t y, void *context)
{
    struct average *a = context;
    a->x[x] += a->y[y] / a->members[y];
}

static void average(const struct shape *x, const struct shape *y, double *at_x, double *at_y,
                    double *result, int64_t result_count, void (*visit)(int64_t, int64_t, void *))
{
    double members[shape_count(y)];
    memset(members, 0, sizeof members);
    memset(result, 0, (size_t)result_count * sizeof *result);
    struct average a = {at_x, at_y, members};
    for_each_pair(x, y, count_member, &a);
    for_each_pair(x, y, visit, &a);
}

void ref_adaptive_avg_pool2d(const struct node *node, double *const *in, double *const *out,
                             const struct step *step)
{
    (void)step;
    const struct shape *y = &node->out[0]->shape;
    average(&node->in[0]->shape, y, in[0], out[0], out[0], shape_count(y), add_to_output);
}

void ref_adaptive_avg_pool2d_grad(const struct node *node, double *const *in, double *const *out,
                                  const struct step *step)
{
    (void)step;
    const struct shape *x = &node->out[0]->shape;
    average(x, &node->in[0]->shape, out[0], in[0], out[0], shape_count(x), add_to_input);
}
