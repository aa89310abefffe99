/* loss.c: cross_entropy, mse, argmax. */
#include <math.h>

#include "tests/ref/ref.h"

void ref_cross_entropy(const struct node *node, double *const *in, double *const *out,
                       const struct step *step)
{
    int64_t n_size = node->in[0]->shape.dim[0], classes = node->in[0]->shape.dim[1];
    out[0][0] = 0;
    for (int64_t n = 0; n < n_size; n++) {
        const double *row = in[0] + n * classes;
        int64_t target = (int64_t)in[1][n];
        double largest = -INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++)
            largest = fmax(largest, row[c]);
        for (int64_t c = 0; c < classes; c++)
            sum += exp(row[c] - largest);
        out[0][0] += largest + log(sum) - row[target];
        for (int64_t c = 0; out[1] && c < classes; c++)
            out[1][n * classes + c] =
                (exp(row[c] - largest) / sum - (c == target ? 1 : 0)) / step->loss_divisor;
    }
}

void ref_mse(const struct node *node, double *const *in, double *const *out,
             const struct step *step)
{
    out[0][0] = 0;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        out[0][0] += pow(in[0][i] - in[1][i], 2);
        if (out[1])
            out[1][i] = 2 * (in[0][i] - in[1][i]) / step->loss_divisor;
    }
}

void ref_argmax(const struct node *node, double *const *in, double *const *out,
                const struct step *step)
{
    (void)step;
    int64_t classes = node->in[0]->shape.dim[1];
    for (int64_t n = 0; n < node->in[0]->shape.dim[0]; n++) {
        const double *row = in[0] + n * classes;
        int64_t best = 0;
        for (int64_t c = classes - 1; c >= 0; c--) /* backwards: the first of equals stays */
            if (isnan(row[c]) || (!isnan(row[best]) && row[c] >= row[best]))
                best = c;
        out[0][n] = (double)best;
    }
}
