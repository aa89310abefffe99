/* batch_norm_relu_grad.c: the gradient of batch_norm_relu.
 *
 * Where y was positive is told by x: the same arithmetic is done once more, and y may be dead by
 * now. Only with a residual is y read, once: what passes the ReLU is the residual's gradient, and
 * goes on from there. A thread takes some channels of all samples, once for their sums and once
 * for gx.
 */
#include <math.h>

#include "engine/backend/cpu/channels.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

enum { X, GY, WEIGHT, BIAS, MEAN, VARIANCE, Y };    /* inputs */
enum { GX, GRAD_WEIGHT, GRAD_BIAS, GRAD_RESIDUAL }; /* outputs */

/* By lane. gx = scale * g + slope * (x - mean) + shift, where g passed the ReLU. */
struct factors {
    float mean[LANES], scale[LANES], bias[LANES], slope[LANES], shift[LANES];
    double inverse[LANES];
};

/* Of g, and of g * (x - mean). */
struct sums {
    double all[LANES], dot[LANES];
};

struct pass {
    struct view view;
    double eps;
    struct real x, gy, y, gx; /* y.at NULL: no residual */
    struct real passed;       /* the residual's gradient */
    const float *weight, *bias, *mean, *variance;
    float *grad_weight, *grad_bias; /* NULL: not wanted */
    struct sums *sums;              /* by unit */
    struct factors *factors;
};

/* What of gy passes the ReLU. */
VECTOR_INLINE float pass_by_y(float y, float gy)
{
    return y <= 0 ? 0 : gy;
}

VECTOR_INLINE float pass_by_x(const struct factors *factors, int l, float x, float gy)
{
    float y = (x - factors->mean[l]) * factors->scale[l] + factors->bias[l];
    return y <= 0 ? 0 : gy;
}

static VECTOR_CLONES void add_by_x(const float *x, const float *gy, int64_t rows,
                                   const struct factors *factors, struct sums *sums)
{
    float all[LANES] = {0}, dot[LANES] = {0};
    for (int64_t i = 0; i < rows * LANES; i += LANES) {
        __builtin_prefetch(x + i + CHUNK_AHEAD);
        __builtin_prefetch(gy + i + CHUNK_AHEAD);
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            float gradient = gy[i + l]; /* read in any case: a condition would cost the vectors */
            float g = pass_by_x(factors, l, x[i + l], gradient);
            all[l] += g;
            dot[l] += g * (x[i + l] - factors->mean[l]);
        }
    }
#pragma omp simd
    for (int l = 0; l < LANES; l++) {
        sums->all[l] += (double)all[l];
        sums->dot[l] += (double)dot[l];
    }
}

static VECTOR_CLONES void write_by_x(const float *x, const float *gy, int64_t rows,
                                     const struct factors *factors, float *gx)
{
    for (int64_t i = 0; i < rows * LANES; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            float gradient = gy[i + l];
            gx[i + l] = factors->scale[l] * pass_by_x(factors, l, x[i + l], gradient) +
                        factors->slope[l] * (x[i + l] - factors->mean[l]) + factors->shift[l];
        }
}

/* `g`: what passes is left there. */
static VECTOR_CLONES void add_by_y(const float *x, const float *gy, const float *y, int64_t rows,
                                   const struct factors *factors, struct sums *sums, float *g)
{
    float all[LANES] = {0}, dot[LANES] = {0};
    for (int64_t i = 0; i < rows * LANES; i += LANES) {
        __builtin_prefetch(x + i + CHUNK_AHEAD);
        __builtin_prefetch(gy + i + CHUNK_AHEAD);
        __builtin_prefetch(y + i + CHUNK_AHEAD);
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            float gradient = gy[i + l], passed = pass_by_y(y[i + l], gradient);
            g[i + l] = passed;
            all[l] += passed;
            dot[l] += passed * (x[i + l] - factors->mean[l]);
        }
    }
#pragma omp simd
    for (int l = 0; l < LANES; l++) {
        sums->all[l] += (double)all[l];
        sums->dot[l] += (double)dot[l];
    }
}

static VECTOR_CLONES void write_rows(const float *x, const float *g, int64_t rows,
                                     const struct factors *factors, float *gx)
{
    for (int64_t i = 0; i < rows * LANES; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            gx[i + l] = factors->scale[l] * g[i + l] +
                        factors->slope[l] * (x[i + l] - factors->mean[l]) + factors->shift[l];
}

/* The chunk's part of the sums, and with a residual its gradient, which gx is made from then. */
static void add_chunk(const struct pass *pass, const struct chunk *chunk, int64_t u)
{
    const struct factors *factors = &pass->factors[u];
    struct sums *sums = &pass->sums[u];
    float x_room[CHUNK_FLOATS], gy_room[CHUNK_FLOATS], y_room[CHUNK_FLOATS], g_room[CHUNK_FLOATS];
    const float *x = chunk_load(pass->x, chunk, x_room);
    const float *gy = chunk_load(pass->gy, chunk, gy_room);
    if (!pass->y.at) {
        add_by_x(x, gy, chunk->rows, factors, sums);
        return;
    }
    float *g = chunk_rows(pass->passed, chunk, g_room);
    add_by_y(x, gy, chunk_load(pass->y, chunk, y_room), chunk->rows, factors, sums, g);
    chunk_store(pass->passed, chunk, g);
}

static void write_chunk(const struct pass *pass, const struct chunk *chunk, int64_t u)
{
    const struct factors *factors = &pass->factors[u];
    float x_room[CHUNK_FLOATS], g_room[CHUNK_FLOATS], gx_room[CHUNK_FLOATS];
    const float *x = chunk_load(pass->x, chunk, x_room);
    float *gx = chunk_rows(pass->gx, chunk, gx_room);
    if (pass->y.at)
        write_rows(x, chunk_load(pass->passed, chunk, g_room), chunk->rows, factors, gx);
    else
        write_by_x(x, chunk_load(pass->gy, chunk, g_room), chunk->rows, factors, gx);
    chunk_store(pass->gx, chunk, gx);
}

typedef void chunk_work(const struct pass *pass, const struct chunk *chunk, int64_t u);

static void run_sample(const struct pass *pass, int64_t sample, int64_t begin, int64_t end,
                       chunk_work *work)
{
    const struct view *view = &pass->view;
    for (int64_t u = begin; u < end; u++) {
        struct unit unit = unit_at(view, u);
        for (int64_t i = 0; i < chunks_of(view); i++) {
            struct chunk chunk = chunk_at(view, sample, &unit, i);
            work(pass, &chunk, u);
        }
    }
}

static void find_factors(const struct pass *pass, const struct unit *unit, struct factors *factors)
{
    float variance[LANES];
    unit_spread(&pass->view, unit, pass->mean, 0, factors->mean);
    unit_spread(&pass->view, unit, pass->variance, 0, variance);
    unit_spread(&pass->view, unit, pass->weight, 1, factors->scale);
    unit_spread(&pass->view, unit, pass->bias, 0, factors->bias);
    for (int l = 0; l < LANES; l++) {
        double spread = sqrt((double)variance[l] + pass->eps);
        factors->inverse[l] = 1 / spread;
        factors->scale[l] = (float)((double)factors->scale[l] / spread);
    }
}

/* The gradients of weight and bias, and what gx needs of the sums. */
static void settle(const struct pass *pass, const struct unit *unit, struct sums *sums,
                   struct factors *factors)
{
    double count = (double)(pass->view.n * pass->view.steps);
    int period = chunk_period(&pass->view);
    for (int l = period; l < LANES; l++) {
        sums->all[l % period] += sums->all[l];
        sums->dot[l % period] += sums->dot[l];
    }
    for (int l = 0; l < LANES; l++) {
        double scale = (double)factors->scale[l], inverse = factors->inverse[l];
        factors->slope[l] = (float)(-scale * inverse * inverse * sums->dot[l % period] / count);
        factors->shift[l] = (float)(-scale * sums->all[l % period] / count);
    }
    for (int l = 0; l < real_lanes(&pass->view, unit); l++) {
        if (pass->grad_weight)
            pass->grad_weight[unit->channel + l] = (float)(sums->dot[l] * factors->inverse[l]);
        if (pass->grad_bias)
            pass->grad_bias[unit->channel + l] = (float)sums->all[l];
    }
}

/* gx is made backwards through the samples: what was read last may be in a cache still. */
static void grad_units(int64_t begin, int64_t end, void *context)
{
    const struct pass *pass = context;
    memset(pass->sums + begin, 0, (size_t)(end - begin) * sizeof *pass->sums);
    for (int64_t u = begin; u < end; u++) {
        struct unit unit = unit_at(&pass->view, u);
        find_factors(pass, &unit, &pass->factors[u]);
    }
    for (int64_t n = 0; n < pass->view.n; n++)
        run_sample(pass, n, begin, end, add_chunk);
    for (int64_t u = begin; u < end; u++) {
        struct unit unit = unit_at(&pass->view, u);
        settle(pass, &unit, &pass->sums[u], &pass->factors[u]);
    }
    for (int64_t n = pass->view.n; n-- > 0;)
        run_sample(pass, n, begin, end, write_chunk);
}

static int run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct node *node = own->node;
    const struct batch_norm_attr *attr = node->attr;
    bool low = own->choice->in[X]->dtype == DTYPE_BF16;
    struct pass pass = {
        .view = view_of(own->choice->in[X]),
        .eps = attr->eps,
        .x = {args->in[X], low},
        .gy = {args->in[GY], low},
        .y = {own_in(node, Y) ? args->in[Y] : NULL, low},
        .gx = {args->out[GX], low},
        .passed = {own_in(node, Y) ? args->out[GRAD_RESIDUAL] : NULL, low},
        .weight = own_in(node, WEIGHT) ? args->in[WEIGHT] : NULL,
        .bias = own_in(node, BIAS) ? args->in[BIAS] : NULL,
        .mean = args->in[MEAN],
        .variance = args->in[VARIANCE],
        .grad_weight = own_out(node, GRAD_WEIGHT) ? args->out[GRAD_WEIGHT] : NULL,
        .grad_bias = own_out(node, GRAD_BIAS) ? args->out[GRAD_BIAS] : NULL,
    };
    pass.sums = args->scratch;
    pass.factors = (struct factors *)(pass.sums + units_of(&pass.view));
    team_for(units_of(&pass.view), grain_of(&pass.view), grad_units, &pass);
    return 0;
}

/* All that has x's shape lies as x comes where that is a grid, else plain. */
static int query(const struct node *node, const struct layout *const *in, struct arena *arena,
                 struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, NULL, arena, ret_choice, err);
    if (rc)
        return rc;
    if (in[X]->block)
        ret_choice->in[X] = in[X];
    struct view view = view_of(ret_choice->in[X]);
    ret_choice->scratch_bytes =
        (size_t)units_of(&view) * (sizeof(struct sums) + sizeof(struct factors));
    ret_choice->in[GY] = ret_choice->out[GX] = ret_choice->in[X];
    ret_choice->inplace[GX] = GY;
    if (own_in(node, Y)) {
        ret_choice->in[Y] = ret_choice->out[GRAD_RESIDUAL] = ret_choice->in[X];
        ret_choice->inplace[GX] = X;
        ret_choice->inplace[GRAD_RESIDUAL] = GY;
    }
    return 0;
}

const struct kernel kernel_batch_norm_relu_grad = {"batch_norm_relu_grad", query, own_create, run,
                                                   own_destroy};
