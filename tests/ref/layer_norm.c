/* layer_norm.c: y = (x - mean) / sqrt(variance + eps) * w + b, a row at a time. The gradient is
 * that of the formula with mean and variance as functions of x. */
#include <math.h>
#include <string.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

static int64_t row_length(const struct node *node)
{
    const struct layer_norm_attr *attr = node->attr;
    const struct shape *x = &node->in[0]->shape;
    int64_t length = 1;
    for (int i = x->rank - attr->dims; i < x->rank; i++)
        length *= x->dim[i];
    return length;
}

void ref_layer_norm(const struct node *node, double *const *in, double *const *out,
                    const struct step *step)
{
    (void)step;
    const struct layer_norm_attr *attr = node->attr;
    int64_t f_size = row_length(node), n_size = shape_count(&node->in[0]->shape) / f_size;
    for (int64_t n = 0; n < n_size; n++) {
        const double *x = in[0] + n * f_size;
        double mean = 0, variance = 0;
        for (int64_t f = 0; f < f_size; f++)
            mean += x[f] / (double)f_size;
        for (int64_t f = 0; f < f_size; f++)
            variance += pow(x[f] - mean, 2) / (double)f_size;
        for (int64_t f = 0; f < f_size; f++)
            out[0][n * f_size + f] =
                (x[f] - mean) / sqrt(variance + attr->eps) * (in[1] ? in[1][f] : 1) +
                (in[2] ? in[2][f] : 0);
        if (out[1])
            out[1][n] = mean;
        if (out[2])
            out[2][n] = variance;
    }
}

void ref_layer_norm_grad(const struct node *node, double *const *in, double *const *out,
                         const struct step *step)
{
    (void)step;
    const struct layer_norm_attr *attr = node->attr;
    int64_t f_size = row_length(node), n_size = shape_count(&node->in[0]->shape) / f_size;
    for (int k = 1; k <= 2; k++)
        if (out[k])
            memset(out[k], 0, (size_t)f_size * sizeof(double));
    for (int64_t n = 0; n < n_size; n++) {
        const double *x = in[0] + n * f_size, *gy = in[1] + n * f_size;
        double inverse = 1 / sqrt(in[4][n] + attr->eps), sum = 0, dot = 0;
        for (int64_t f = 0; f < f_size; f++) {
            double normal = (x[f] - in[3][n]) * inverse, g = gy[f] * (in[2] ? in[2][f] : 1);
            sum += g / (double)f_size;
            dot += g * normal / (double)f_size;
            if (out[1])
                out[1][f] += gy[f] * normal;
            if (out[2])
                out[2][f] += gy[f];
        }
        for (int64_t f = 0; f < f_size; f++) {
            double normal = (x[f] - in[3][n]) * inverse, g = gy[f] * (in[2] ? in[2][f] : 1);
            out[0][n * f_size + f] = inverse * (g - sum - normal * dot);
        }
    }
}
