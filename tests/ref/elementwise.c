/* elementwise.c: relu, add, dropout, cast. */
#include <math.h>

#include "engine/base/rng.h"
#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

void ref_relu(const struct node *node, double *const *in, double *const *out,
              const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++)
        out[0][i] = in[0][i] < 0 ? 0 : in[0][i];
}

void ref_relu_grad(const struct node *node, double *const *in, double *const *out,
                   const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++)
        out[0][i] = in[0][i] > 0 ? in[1][i] : 0;
}

void ref_add(const struct node *node, double *const *in, double *const *out,
             const struct step *step)
{
    (void)step;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        out[0][i] = 0;
        for (int k = 0; k < node->n_in; k++)
            out[0][i] += in[k][i];
    }
}

/* The nearer of the two floats of 8 bits around it, the even one in the middle. */
static double nearest_bf16(double x)
{
    int exponent;
    if (x == 0 || !isfinite(x))
        return x;
    frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(x, 8 - exponent)), exponent - 8);
}

void ref_cast(const struct node *node, double *const *in, double *const *out,
              const struct step *step)
{
    (void)step;
    bool low = node->out[0]->dtype == DTYPE_BF16;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++)
        out[0][i] = low ? nearest_bf16(in[0][i]) : in[0][i];
}

void ref_dropout(const struct node *node, double *const *in, double *const *out,
                 const struct step *step)
{
    const struct dropout_attr *attr = node->attr;
    struct rng_key key =
        rng_subkey(rng_key(step->seed, RNG_DROPOUT, (uint64_t)attr->layer), (uint64_t)step->number);
    int64_t total = shape_count(&node->in[0]->shape), sample = total / node->in[0]->shape.dim[0];
    for (int64_t i = 0; i < total; i++) {
        uint32_t words[4];
        rng_block(key, (uint64_t)(step->first_sample + i / sample), (uint64_t)(i % sample / 4),
                  words);
        bool keep = (double)rng_uniform(words[i % sample % 4]) >= attr->p;
        out[0][i] = keep ? in[0][i] / (1 - attr->p) : 0;
    }
}

void ref_dropout_grad(const struct node *node, double *const *in, double *const *out,
                      const struct step *step)
{
    ref_dropout(node, in, out, step);
}
