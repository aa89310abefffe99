/* softmax.c: y[i] = exp(x[i]) / sum(exp(x)) along one dimension, its logarithm, and the gradients
 * as the product with the Jacobian. */
#include <math.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

/* Elements that are normalised together: n of them, `step` apart, from `at` on. */
struct line {
    int64_t at, n, step;
};

static int64_t line_count(const struct node *node)
{
    const struct softmax_attr *attr = node->attr;
    const struct shape *shape = &node->in[0]->shape;
    return shape_count(shape) / shape->dim[attr->dim];
}

static struct line line_of(const struct node *node, int64_t i)
{
    const struct softmax_attr *attr = node->attr;
    const struct shape *shape = &node->in[0]->shape;
    int64_t inner = 1, n = shape->dim[attr->dim];
    for (int k = attr->dim + 1; k < shape->rank; k++)
        inner *= shape->dim[k];
    return (struct line){i / inner * n * inner + i % inner, n, inner};
}

static double log_sum_exp(const double *x, struct line l)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < l.n; i++)
        largest = fmax(largest, x[l.at + i * l.step]);
    for (int64_t i = 0; i < l.n; i++)
        sum += exp(x[l.at + i * l.step] - largest);
    return largest + log(sum);
}

void ref_log_softmax(const struct node *node, double *const *in, double *const *out,
                     const struct step *step)
{
    (void)step;
    for (int64_t k = 0; k < line_count(node); k++) {
        struct line l = line_of(node, k);
        double total = log_sum_exp(in[0], l);
        for (int64_t i = 0; i < l.n; i++)
            out[0][l.at + i * l.step] = in[0][l.at + i * l.step] - total;
    }
}

void ref_softmax(const struct node *node, double *const *in, double *const *out,
                 const struct step *step)
{
    ref_log_softmax(node, in, out, step);
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++)
        out[0][i] = exp(out[0][i]);
}

void ref_softmax_grad(const struct node *node, double *const *in, double *const *out,
                      const struct step *step)
{
    (void)step;
    const double *y = in[0], *gy = in[1];
    for (int64_t k = 0; k < line_count(node); k++) {
        struct line l = line_of(node, k);
        for (int64_t i = 0; i < l.n; i++) {
            double sum = 0;
            for (int64_t j = 0; j < l.n; j++) {
                int64_t a = l.at + i * l.step, b = l.at + j * l.step;
                sum += gy[b] * y[b] * ((i == j) - y[a]);
            }
            out[0][l.at + i * l.step] = sum;
        }
    }
}

void ref_log_softmax_grad(const struct node *node, double *const *in, double *const *out,
                          const struct step *step)
{
    (void)step;
    const double *y = in[0], *gy = in[1];
    for (int64_t k = 0; k < line_count(node); k++) {
        struct line l = line_of(node, k);
        for (int64_t i = 0; i < l.n; i++) {
            double sum = 0;
            for (int64_t j = 0; j < l.n; j++)
                sum += gy[l.at + j * l.step] * ((i == j) - exp(y[l.at + i * l.step]));
            out[0][l.at + i * l.step] = sum;
        }
    }
}
