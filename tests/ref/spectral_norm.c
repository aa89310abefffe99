/* spectral_norm.c: torch.nn.utils.spectral_norm: one power iteration, the weight, its gradient. */
#include <math.h>

#include "tests/ref/ref.h"

struct matrix {
    const double *w;
    int64_t rows, columns;
};

static struct matrix matrix_of(const struct node *node, int input, const double *w)
{
    int64_t rows = node->in[input]->shape.dim[0];
    return (struct matrix){w, rows, shape_count(&node->in[input]->shape) / rows};
}

static void normalize(double *x, int64_t n)
{
    double norm = 0;
    for (int64_t i = 0; i < n; i++)
        norm += x[i] * x[i];
    norm = fmax(sqrt(norm), 1e-12);
    for (int64_t i = 0; i < n; i++)
        x[i] /= norm;
}

void ref_power_iteration(const struct node *node, double *const *in, double *const *out,
                         const struct step *step)
{
    (void)step;
    struct matrix m = matrix_of(node, 0, in[0]);
    double *u = in[1], *v = in[2];
    for (int64_t c = 0; c < m.columns; c++) {
        v[c] = 0;
        for (int64_t r = 0; r < m.rows; r++)
            v[c] += m.w[r * m.columns + c] * u[r];
    }
    normalize(v, m.columns);
    for (int64_t r = 0; r < m.rows; r++) {
        u[r] = 0;
        for (int64_t c = 0; c < m.columns; c++)
            u[r] += m.w[r * m.columns + c] * v[c];
    }
    normalize(u, m.rows);
    for (int64_t r = 0; r < m.rows; r++)
        out[0][r] = u[r];
    for (int64_t c = 0; c < m.columns; c++)
        out[1][c] = v[c];
}

void ref_spectral_norm(const struct node *node, double *const *in, double *const *out,
                       const struct step *step)
{
    (void)step;
    struct matrix m = matrix_of(node, 0, in[0]);
    double sigma = 0;
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t c = 0; c < m.columns; c++)
            sigma += in[1][r] * m.w[r * m.columns + c] * in[2][c];
    for (int64_t i = 0; i < m.rows * m.columns; i++)
        out[0][i] = m.w[i] / sigma;
    out[1][0] = sigma;
}

void ref_spectral_norm_grad(const struct node *node, double *const *in, double *const *out,
                            const struct step *step)
{
    (void)step;
    struct matrix m = matrix_of(node, 1, in[1]);
    const double *gy = in[0], *u = in[2], *v = in[3], sigma = in[4][0];
    double flow = 0; /* to σ */
    for (int64_t i = 0; i < m.rows * m.columns; i++)
        flow -= gy[i] * m.w[i] / (sigma * sigma);
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t c = 0; c < m.columns; c++)
            out[0][r * m.columns + c] = gy[r * m.columns + c] / sigma + flow * u[r] * v[c];
}
