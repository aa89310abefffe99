/* update.c: sgd, adam, rmsprop: the algorithms of torch.optim's documentation, line by line. */
#include <math.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

/* Inputs of every update. */
enum { W, GRAD, SCALE, STATE };

static double scaled_grad(double *const *in, int64_t i)
{
    return in[SCALE] ? in[SCALE][0] * in[GRAD][i] : in[GRAD][i];
}

void ref_sgd(const struct node *node, double *const *in, double *const *out,
             const struct step *step)
{
    (void)out;
    const struct sgd_attr *attr = node->attr;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        double g = scaled_grad(in, i) + attr->weight_decay * in[W][i];
        if (in[STATE]) {
            double *b = &in[STATE][i];
            *b = step->number == 1 ? g : attr->momentum * *b + (1 - attr->dampening) * g;
            g = attr->nesterov ? g + attr->momentum * *b : *b;
        }
        in[W][i] -= step->lr * g;
    }
}

void ref_adam(const struct node *node, double *const *in, double *const *out,
              const struct step *step)
{
    (void)out;
    const struct adam_attr *attr = node->attr;
    double t = (double)step->number;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        double g = scaled_grad(in, i), *w = &in[W][i], *m = &in[STATE][i], *v = &in[STATE + 1][i];
        if (attr->decoupled)
            *w -= step->lr * attr->weight_decay * *w;
        else
            g += attr->weight_decay * *w;
        *m = attr->beta1 * *m + (1 - attr->beta1) * g;
        *v = attr->beta2 * *v + (1 - attr->beta2) * g * g;
        double m_hat = *m / (1 - pow(attr->beta1, t)), v_max = *v;
        if (in[STATE + 2])
            v_max = in[STATE + 2][i] = fmax(in[STATE + 2][i], *v);
        *w -= step->lr * m_hat / (sqrt(v_max / (1 - pow(attr->beta2, t))) + attr->eps);
    }
}

void ref_rmsprop(const struct node *node, double *const *in, double *const *out,
                 const struct step *step)
{
    (void)out;
    const struct rmsprop_attr *attr = node->attr;
    double *const *state = in + STATE;
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        double g = scaled_grad(in, i) + attr->weight_decay * in[W][i];
        double v = state[0][i] = attr->alpha * state[0][i] + (1 - attr->alpha) * g * g;
        if (state[2]) {
            state[2][i] = attr->alpha * state[2][i] + (1 - attr->alpha) * g;
            v -= state[2][i] * state[2][i];
        }
        double move = g / (sqrt(v) + attr->eps);
        if (state[1])
            move = state[1][i] = attr->momentum * state[1][i] + move;
        in[W][i] -= step->lr * move;
    }
}
