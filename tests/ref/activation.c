/* activation.c: gelu, silu, sigmoid, tanh, mul. */
#include <math.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

static const double pi = 3.14159265358979323846;

/* The argument of GELU's tanh, and its derivative. */
static double gelu_inner(double x)
{
    return sqrt(2 / pi) * (x + 0.044715 * x * x * x);
}

static double gelu_inner_grad(double x)
{
    return sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x);
}

void ref_gelu(const struct node *node, double *const *in, double *const *out,
              const struct step *step)
{
    (void)step;
    const struct gelu_attr *attr = node->attr;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        double x = in[0][i];
        out[0][i] = 0.5 * x * (1 + (attr->tanh ? tanh(gelu_inner(x)) : erf(x / sqrt(2))));
    }
}

void ref_gelu_grad(const struct node *node, double *const *in, double *const *out,
                   const struct step *step)
{
    (void)step;
    const struct gelu_attr *attr = node->attr;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        double x = in[0][i], t = tanh(gelu_inner(x));
        double by_erf = 0.5 * (1 + erf(x / sqrt(2))) + x * exp(-x * x / 2) / sqrt(2 * pi);
        double by_tanh = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_inner_grad(x);
        out[0][i] = in[1][i] * (attr->tanh ? by_tanh : by_erf);
    }
}

void ref_silu(const struct node *node, double *const *in, double *const *out,
              const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++)
        out[0][i] = in[0][i] / (1 + exp(-in[0][i]));
}

void ref_silu_grad(const struct node *node, double *const *in, double *const *out,
                   const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        double x = in[0][i], s = 1 / (1 + exp(-x));
        out[0][i] = in[1][i] * s * (1 + x * (1 - s));
    }
}

void ref_sigmoid(const struct node *node, double *const *in, double *const *out,
                 const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++)
        out[0][i] = 1 / (1 + exp(-in[0][i]));
}

void ref_sigmoid_grad(const struct node *node, double *const *in, double *const *out,
                      const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++)
        out[0][i] = in[1][i] * in[0][i] * (1 - in[0][i]);
}

void ref_tanh(const struct node *node, double *const *in, double *const *out,
              const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++)
        out[0][i] = tanh(in[0][i]);
}

void ref_tanh_grad(const struct node *node, double *const *in, double *const *out,
                   const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++)
        out[0][i] = in[1][i] * (1 - in[0][i] * in[0][i]);
}

void ref_mul(const struct node *node, double *const *in, double *const *out,
             const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        out[0][i] = 1;
        for (int k = 0; k < node->n_in; k++)
            out[0][i] *= in[k][i];
    }
}
