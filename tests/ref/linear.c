/* linear.c: y = x w^T + b over the last dimension. */
#include <string.h>

#include "tests/ref/ref.h"

void ref_linear(const struct node *node, double *const *in, double *const *out,
                const struct step *step)
{
    (void)step;
    int64_t o_size = node->in[1]->shape.dim[0], f_size = node->in[1]->shape.dim[1];
    int64_t n_size = shape_count(&node->in[0]->shape) / f_size;
    for (int64_t n = 0; n < n_size; n++)
        for (int64_t o = 0; o < o_size; o++) {
            double sum = in[2] ? in[2][o] : 0;
            for (int64_t f = 0; f < f_size; f++)
                sum += in[0][n * f_size + f] * in[1][o * f_size + f];
            out[0][n * o_size + o] = sum;
        }
}

void ref_linear_input_grad(const struct node *node, double *const *in, double *const *out,
                           const struct step *step)
{
    (void)step;
    int64_t o_size = node->in[1]->shape.dim[0], f_size = node->in[1]->shape.dim[1];
    int64_t n_size = shape_count(&node->in[0]->shape) / o_size;
    for (int64_t n = 0; n < n_size; n++)
        for (int64_t f = 0; f < f_size; f++) {
            double sum = 0;
            for (int64_t o = 0; o < o_size; o++)
                sum += in[0][n * o_size + o] * in[1][o * f_size + f];
            out[0][n * f_size + f] = sum;
        }
}

void ref_linear_weight_grad(const struct node *node, double *const *in, double *const *out,
                            const struct step *step)
{
    (void)step;
    int64_t o_size = node->out[0]->shape.dim[0], f_size = node->out[0]->shape.dim[1];
    int64_t n_size = shape_count(&node->in[0]->shape) / f_size;
    for (int64_t o = 0; o < o_size; o++)
        for (int64_t f = 0; f < f_size; f++) {
            double sum = 0;
            for (int64_t n = 0; n < n_size; n++)
                sum += in[0][n * f_size + f] * in[1][n * o_size + o];
            out[0][o * f_size + f] = sum;
        }
    for (int64_t o = 0; out[1] && o < o_size; o++) {
        out[1][o] = 0;
        for (int64_t n = 0; n < n_size; n++)
            out[1][o] += in[1][n * o_size + o];
    }
}
