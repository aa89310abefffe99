/* spectral_norm.c: power_iteration, spectral_norm and its gradient.
 *
 * Every sum runs over a row, or down a column, in one order: the same bits on any number of
 * threads, so that replicas with other teams agree. Sums are in double.
 */
#include <math.h>

#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"

struct matrix {
    const float *at;
    int64_t rows, columns;
};

static struct matrix matrix_of(const struct value *value, const float *at)
{
    int64_t rows = value->shape.dim[0];
    return (struct matrix){at, rows, shape_count(&value->shape) / rows};
}

static int64_t larger_side(const struct value *value)
{
    struct matrix matrix = matrix_of(value, NULL);
    return matrix.rows > matrix.columns ? matrix.rows : matrix.columns;
}

struct product {
    struct matrix matrix;
    const float *vector;
    double *sum; /* of each row, or of each column */
};

enum { LANES = 8 };

static double dot(const float *a, const float *b, int64_t n)
{
    double lane[LANES] = {0}, sum = 0;
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
#pragma omp simd
        for (int k = 0; k < LANES; k++)
            lane[k] += (double)a[i + k] * (double)b[i + k];
    for (int64_t i = whole; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
}

static void sum_rows(int64_t begin, int64_t end, void *context)
{
    const struct product *product = context;
    const struct matrix *w = &product->matrix;
    for (int64_t r = begin; r < end; r++)
        product->sum[r] = dot(w->at + r * w->columns, product->vector, w->columns);
}

static void sum_columns(int64_t begin, int64_t end, void *context)
{
    const struct product *product = context;
    const struct matrix *w = &product->matrix;
    for (int64_t c = begin; c < end; c++)
        product->sum[c] = 0;
    for (int64_t r = 0; r < w->rows; r++) {
        const float *row = w->at + r * w->columns;
        double factor = (double)product->vector[r];
#pragma omp simd
        for (int64_t c = begin; c < end; c++)
            product->sum[c] += (double)row[c] * factor;
    }
}

/* W v into sum; Wᵀ u into sum. */
static void multiply(struct product *product)
{
    team_for(product->matrix.rows, OWN_GRAIN / product->matrix.columns + 1, sum_rows, product);
}

static void multiply_transposed(struct product *product)
{
    team_for(product->matrix.columns, OWN_GRAIN / product->matrix.rows + 1, sum_columns, product);
}

/* torch.nn.functional.normalize with spectral_norm's eps. */
static void normalise(const double *sum, int64_t n, float *vector, float *copy)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += sum[i] * sum[i];
    double norm = fmax(sqrt(squares), 1e-12);
    for (int64_t i = 0; i < n; i++)
        vector[i] = copy[i] = (float)(sum[i] / norm);
}

enum { W, U, V }; /* inputs of power_iteration and spectral_norm */

static int power_iteration_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct product product = {matrix_of(own->node->in[W], args->in[W]), args->in[U], args->scratch};
    multiply_transposed(&product);
    normalise(product.sum, product.matrix.columns, args->in[V], args->out[1]);
    product.vector = args->in[V];
    multiply(&product);
    normalise(product.sum, product.matrix.rows, args->in[U], args->out[0]);
    return 0;
}

struct quotient {
    const float *x;
    float *y;
    float divisor;
};

static void divide(int64_t begin, int64_t end, void *context)
{
    const struct quotient *quotient = context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        quotient->y[i] = quotient->x[i] / quotient->divisor;
}

static int spectral_norm_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct product product = {matrix_of(own->node->in[W], args->in[W]), args->in[V], args->scratch};
    const float *u = args->in[U];
    double sigma = 0;
    multiply(&product);
    for (int64_t r = 0; r < product.matrix.rows; r++)
        sigma += (double)u[r] * product.sum[r];
    struct quotient quotient = {args->in[W], args->out[0], (float)sigma};
    *(float *)args->out[1] = quotient.divisor;
    team_for(product.matrix.rows * product.matrix.columns, OWN_GRAIN, divide, &quotient);
    return 0;
}

enum { GY, GRAD_W, GRAD_U, GRAD_V, SIGMA }; /* inputs of spectral_norm_grad */

/* gw = gy / σ − (Σ gy · W) / σ² · u vᵀ */
struct gradient {
    struct matrix gy;
    const float *w, *u, *v;
    float *gw;
    double *sum; /* of each row of gy · W */
    double sigma, factor;
};

static void sum_products(int64_t begin, int64_t end, void *context)
{
    const struct gradient *g = context;
    int64_t n = g->gy.columns;
    for (int64_t r = begin; r < end; r++)
        g->sum[r] = dot(g->gy.at + r * n, g->w + r * n, n);
}

static void fill_rows(int64_t begin, int64_t end, void *context)
{
    const struct gradient *g = context;
    int64_t n = g->gy.columns;
    for (int64_t r = begin; r < end; r++) {
        const float *gy = g->gy.at + r * n;
        float *gw = g->gw + r * n;
        double factor = g->factor * (double)g->u[r];
#pragma omp simd
        for (int64_t c = 0; c < n; c++)
            gw[c] = (float)((double)gy[c] / g->sigma - factor * (double)g->v[c]);
    }
}

static int spectral_norm_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct gradient g = {
        .gy = matrix_of(own->node->in[GY], args->in[GY]),
        .w = args->in[GRAD_W],
        .u = args->in[GRAD_U],
        .v = args->in[GRAD_V],
        .gw = args->out[0],
        .sum = args->scratch,
        .sigma = (double)*(const float *)args->in[SIGMA],
    };
    int64_t grain = OWN_GRAIN / g.gy.columns + 1;
    team_for(g.gy.rows, grain, sum_products, &g);
    for (int64_t r = 0; r < g.gy.rows; r++)
        g.factor += g.sum[r];
    g.factor /= g.sigma * g.sigma;
    team_for(g.gy.rows, grain, fill_rows, &g);
    return 0;
}

/* All plain; the scratch holds a sum for each row or column. */
static int spectral_query(const struct node *node, const struct layout *const *in,
                          struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = (size_t)larger_side(node->in[0]) * sizeof(double);
    return rc;
}

const struct kernel kernel_power_iteration = {"power_iteration", spectral_query, own_create,
                                              power_iteration_run, own_destroy};
const struct kernel kernel_spectral_norm = {"spectral_norm", spectral_query, own_create,
                                            spectral_norm_run, own_destroy};
const struct kernel kernel_spectral_norm_grad = {"spectral_norm_grad", spectral_query, own_create,
                                                 spectral_norm_grad_run, own_destroy};
