/* batch_norm.c: y = (x - mean) / sqrt(variance + eps) * w + b, a channel at a time. The gradient is
 * that of the formula with mean and variance as functions of x. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

/* [N, C, H, W] or [N, C] as samples, channels and pixels. */
struct view {
    int64_t n, c, pixels;
};

static struct view view_of(const struct shape *shape)
{
    struct view view = {shape->dim[0], shape->dim[1], 1};
    for (int i = 2; i < shape->rank; i++)
        view.pixels *= shape->dim[i];
    return view;
}

/* The j-th of a channel's values. */
static int64_t position(const struct view *view, int64_t c, int64_t j)
{
    return (j / view->pixels * view->c + c) * view->pixels + j % view->pixels;
}

static void normalise(const struct view *view, int64_t c, double *const *in, double *y, double mean,
                      double variance, double eps)
{
    for (int64_t j = 0; j < view->n * view->pixels; j++) {
        int64_t i = position(view, c, j);
        y[i] = (in[0][i] - mean) / sqrt(variance + eps) * (in[1] ? in[1][c] : 1) +
               (in[2] ? in[2][c] : 0);
    }
}

void ref_batch_norm(const struct node *node, double *const *in, double *const *out,
                    const struct step *step)
{
    (void)step;
    const struct batch_norm_attr *attr = node->attr;
    struct view view = view_of(&node->in[0]->shape);
    int64_t count = view.n * view.pixels;
    for (int64_t c = 0; c < view.c; c++) {
        double mean = 0, squares = 0;
        for (int64_t j = 0; j < count; j++)
            mean += in[0][position(&view, c, j)] / (double)count;
        for (int64_t j = 0; j < count; j++)
            squares += pow(in[0][position(&view, c, j)] - mean, 2);
        normalise(&view, c, in, out[0], mean, squares / (double)count, attr->eps);
        out[1][c] = mean;
        out[2][c] = squares / (double)count;
        if (!in[3])
            continue;
        in[3][c] += attr->momentum * (mean - in[3][c]);
        in[4][c] += attr->momentum * (squares / (double)(count - 1) - in[4][c]);
    }
    if (in[5])
        in[5][0] += 1;
}

void ref_batch_norm_eval(const struct node *node, double *const *in, double *const *out,
                         const struct step *step)
{
    (void)step;
    const struct batch_norm_attr *attr = node->attr;
    struct view view = view_of(&node->in[0]->shape);
    for (int64_t c = 0; c < view.c; c++)
        normalise(&view, c, in, out[0], in[3][c], in[4][c], attr->eps);
}

void ref_batch_norm_grad(const struct node *node, double *const *in, double *const *out,
                         const struct step *step)
{
    (void)step;
    const struct batch_norm_attr *attr = node->attr;
    struct view view = view_of(&node->in[0]->shape);
    int64_t count = view.n * view.pixels;
    const double *x = in[0], *gy = in[1];
    for (int64_t c = 0; c < view.c; c++) {
        double inverse = 1 / sqrt(in[4][c] + attr->eps), sum = 0, dot = 0;
        for (int64_t j = 0; j < count; j++) {
            int64_t i = position(&view, c, j);
            sum += gy[i];
            dot += gy[i] * (x[i] - in[3][c]) * inverse;
        }
        for (int64_t j = 0; j < count; j++) {
            int64_t i = position(&view, c, j);
            double normal = (x[i] - in[3][c]) * inverse;
            out[0][i] = (in[2] ? in[2][c] : 1) * inverse *
                        (gy[i] - sum / (double)count - normal * dot / (double)count);
        }
        if (out[1])
            out[1][c] = dot;
        if (out[2])
            out[2][c] = sum;
    }
}

/* y of before the ReLU, in its place. */
static void add_relu(const struct node *node, int residual, double *const *in, double *y)
{
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        double value = y[i] + (residual < node->n_in && in[residual] ? in[residual][i] : 0);
        y[i] = value < 0 ? 0 : value;
    }
}

void ref_batch_norm_relu(const struct node *node, double *const *in, double *const *out,
                         const struct step *step)
{
    ref_batch_norm(node, in, out, step);
    add_relu(node, 6, in, out[0]);
}

void ref_batch_norm_relu_eval(const struct node *node, double *const *in, double *const *out,
                              const struct step *step)
{
    ref_batch_norm_eval(node, in, out, step);
    add_relu(node, 5, in, out[0]);
}

void ref_batch_norm_relu_grad(const struct node *node, double *const *in, double *const *out,
                              const struct step *step)
{
    const struct batch_norm_attr *attr = node->attr;
    struct view view = view_of(&node->in[0]->shape);
    int64_t count = shape_count(&node->in[0]->shape);
    double *y = calloc((size_t)count, sizeof *y), *gy = calloc((size_t)count, sizeof *gy);
    double *const norm_in[] = {in[0], in[2], in[3], NULL, NULL};
    for (int64_t c = 0; c < view.c; c++)
        normalise(&view, c, norm_in, y, in[4][c], in[5][c], attr->eps);
    for (int64_t i = 0; i < count; i++)
        gy[i] = (in[6] ? in[6][i] : y[i]) <= 0 ? 0 : in[1][i];
    double *const grad_in[] = {in[0], gy, in[2], in[4], in[5]};
    ref_batch_norm_grad(node, grad_in, out, step);
    if (in[6])
        memcpy(out[3], gy, (size_t)count * sizeof *gy);
    free(y);
    free(gy);
}
