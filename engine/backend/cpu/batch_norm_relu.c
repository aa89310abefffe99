/* batch_norm_relu.c: batch_norm_relu, batch_norm_relu_eval: a BatchNorm, a sum with another tensor
 * where there is one, and a ReLU.
 *
 * A thread takes some channels of all samples: it reads x once for the statistics, a run at a time
 * (mean and squared deviations of each, joined as Chan, Golub and LeVeque do), and once more for y,
 * backwards through the samples: the last ones may be in a cache still.
 * The spread is the variance. NaN stays NaN, as in relu.
 */
#include <math.h>

#include "engine/backend/cpu/channels.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

enum { X, WEIGHT, BIAS, MEAN, VAR, TRACKED, RESIDUAL }; /* inputs of batch_norm_relu */
enum { EVAL_RESIDUAL = 5 };                             /* of batch_norm_relu_eval */

/* By lane: of the values so far. */
struct moments {
    double count[LANES], mean[LANES], squares[LANES];
};

/* By lane: y = (x - mean) * scale + bias. */
struct factors {
    float mean[LANES], scale[LANES], bias[LANES];
};

struct pass {
    struct view view;
    double eps, momentum;
    struct real x, residual, y; /* residual.at NULL: absent */
    const float *weight, *bias; /* NULL: absent */
    float *mean, *variance;
    float *running_mean, *running_var; /* NULL: absent */
    bool streams;                      /* y goes past the caches */
    struct moments *moments;           /* by unit */
    struct factors *factors;
};

/* A y of that size is not in a cache any more when it is read again. */
enum { STREAM_BYTES = 4 << 20 };

VECTOR_INLINE void join(struct moments *all, int l, double count, double mean, double squares)
{
    double total = all->count[l] + count, off = mean - all->mean[l], part = count / total;
    all->mean[l] += off * part;
    all->squares[l] += squares + off * off * all->count[l] * part;
    all->count[l] = total;
}

/* Two sums each: an addition need not wait for the one before. */
static VECTOR_CLONES void add_moments(const float *x, const struct chunk *chunk,
                                      struct moments *moments)
{
    int64_t rows = chunk->rows;
    float even[LANES] = {0}, odd[LANES] = {0}, mean[LANES];
    int64_t paired = rows / 2 * 2;
    for (int64_t i = 0; i < paired * LANES; i += 2 * LANES) {
        __builtin_prefetch(x + i + CHUNK_AHEAD);
        __builtin_prefetch(x + i + LANES + CHUNK_AHEAD);
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            even[l] += x[i + l];
            odd[l] += x[i + LANES + l];
        }
    }
    for (int l = 0; l < LANES; l++) {
        float last = paired < rows ? x[paired * LANES + l] : 0;
        mean[l] = (even[l] + odd[l] + last) / (float)rows;
        even[l] = paired < rows ? (last - mean[l]) * (last - mean[l]) : 0;
        odd[l] = 0;
    }
    for (int64_t i = 0; i < paired * LANES; i += 2 * LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            even[l] += (x[i + l] - mean[l]) * (x[i + l] - mean[l]);
            odd[l] += (x[i + LANES + l] - mean[l]) * (x[i + LANES + l] - mean[l]);
        }
    if (chunk->lanes == LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            join(moments, l, (double)rows, (double)mean[l], (double)(even[l] + odd[l]));
    else
        for (int l = 0; l < chunk->lanes; l++)
            join(moments, l, (double)rows, (double)mean[l], (double)(even[l] + odd[l]));
}

/* The running statistics as PyTorch moves them: the unbiased variance, in double. */
static void track(const struct pass *pass, int64_t c, double mean, double squares, double count)
{
    double keep = 1 - pass->momentum;
    pass->running_mean[c] = (float)(pass->momentum * mean + keep * (double)pass->running_mean[c]);
    pass->running_var[c] =
        (float)(pass->momentum * squares / (count - 1) + keep * (double)pass->running_var[c]);
}

static void add_sample(const struct pass *pass, int64_t sample, int64_t begin, int64_t end)
{
    const struct view *view = &pass->view;
    float room[CHUNK_FLOATS];
    for (int64_t u = begin; u < end; u++) {
        struct unit unit = unit_at(view, u);
        for (int64_t i = 0; i < chunks_of(view); i++) {
            struct chunk chunk = chunk_at(view, sample, &unit, i);
            add_moments(chunk_load(pass->x, &chunk, room), &chunk, &pass->moments[u]);
        }
    }
}

static void settle_statistics(const struct pass *pass, const struct unit *unit,
                              struct moments *moments)
{
    int period = chunk_period(&pass->view);
    for (int l = period; l < LANES && moments->count[l] > 0; l++)
        join(moments, l % period, moments->count[l], moments->mean[l], moments->squares[l]);
    for (int l = 0; l < real_lanes(&pass->view, unit); l++) {
        int64_t c = unit->channel + l;
        pass->mean[c] = (float)moments->mean[l];
        pass->variance[c] = (float)(moments->squares[l] / moments->count[l]);
        if (pass->running_mean)
            track(pass, c, moments->mean[l], moments->squares[l], moments->count[l]);
    }
}

static VECTOR_CLONES void normalise_rows(const float *x, const float *residual, int64_t rows,
                                         const struct factors *factors, float *y)
{
    if (!residual) {
        for (int64_t i = 0; i < rows * LANES; i += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++) {
                float value = (x[i + l] - factors->mean[l]) * factors->scale[l] + factors->bias[l];
                y[i + l] = value < 0 ? 0 : value;
            }
        return;
    }
    for (int64_t i = 0; i < rows * LANES; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            float value = (x[i + l] - factors->mean[l]) * factors->scale[l] + factors->bias[l] +
                          residual[i + l];
            y[i + l] = value < 0 ? 0 : value;
        }
}

static void normalise_sample(const struct pass *pass, int64_t sample, int64_t begin, int64_t end)
{
    const struct view *view = &pass->view;
    float x_room[CHUNK_FLOATS], residual_room[CHUNK_FLOATS], y_room[CHUNK_FLOATS];
    for (int64_t u = begin; u < end; u++) {
        struct unit unit = unit_at(view, u);
        for (int64_t i = 0; i < chunks_of(view); i++) {
            struct chunk chunk = chunk_at(view, sample, &unit, i);
            const float *x = chunk_load(pass->x, &chunk, x_room);
            const float *residual =
                pass->residual.at ? chunk_load(pass->residual, &chunk, residual_room) : NULL;
            float *y = pass->streams ? y_room : chunk_rows(pass->y, &chunk, y_room);
            normalise_rows(x, residual, chunk.rows, &pass->factors[u], y);
            chunk_store(pass->y, &chunk, y);
        }
    }
}

static void find_factors(const struct pass *pass, const struct unit *unit, struct factors *factors)
{
    const struct view *view = &pass->view;
    float variance[LANES];
    unit_spread(view, unit, pass->mean, 0, factors->mean);
    unit_spread(view, unit, pass->variance, 0, variance);
    unit_spread(view, unit, pass->weight, 1, factors->scale);
    unit_spread(view, unit, pass->bias, 0, factors->bias);
    for (int l = 0; l < LANES; l++)
        factors->scale[l] =
            (float)((double)factors->scale[l] / sqrt((double)variance[l] + pass->eps));
}

static void eval_units(int64_t begin, int64_t end, void *context)
{
    const struct pass *pass = context;
    for (int64_t u = begin; u < end; u++) {
        struct unit unit = unit_at(&pass->view, u);
        find_factors(pass, &unit, &pass->factors[u]);
    }
    for (int64_t n = pass->view.n; n-- > 0;)
        normalise_sample(pass, n, begin, end);
    store_fence();
}

static void train_units(int64_t begin, int64_t end, void *context)
{
    const struct pass *pass = context;
    memset(pass->moments + begin, 0, (size_t)(end - begin) * sizeof *pass->moments);
    for (int64_t n = 0; n < pass->view.n; n++)
        add_sample(pass, n, begin, end);
    for (int64_t u = begin; u < end; u++) {
        struct unit unit = unit_at(&pass->view, u);
        settle_statistics(pass, &unit, &pass->moments[u]);
    }
    eval_units(begin, end, context);
}

static struct pass pass_of(const struct own *own, const struct kernel_args *args, int residual)
{
    const struct node *node = own->node;
    const struct batch_norm_attr *attr = node->attr;
    struct pass pass = {
        .view = view_of(own->choice->in[X]),
        .eps = attr->eps,
        .momentum = attr->momentum,
        .x = real_of(args->in[X], own->choice->in[X]),
        .y = real_of(args->out[0], own->choice->out[0]),
        .weight = own_in(node, WEIGHT) ? args->in[WEIGHT] : NULL,
        .bias = own_in(node, BIAS) ? args->in[BIAS] : NULL,
    };
    if (own_in(node, residual))
        pass.residual = real_of(args->in[residual], own->choice->in[residual]);
    pass.streams = own->choice->out[0]->bytes >= STREAM_BYTES && pass.y.at != pass.residual.at &&
                   pass.y.at != pass.x.at;
    pass.moments = args->scratch;
    pass.factors = (struct factors *)(pass.moments + units_of(&pass.view));
    return pass;
}

static int relu_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pass pass = pass_of(own, args, RESIDUAL);
    pass.mean = args->out[1];
    pass.variance = args->out[2];
    if (own_in(own->node, MEAN)) {
        pass.running_mean = args->in[MEAN];
        pass.running_var = args->in[VAR];
    }
    team_for(units_of(&pass.view), grain_of(&pass.view), train_units, &pass);
    if (own_in(own->node, TRACKED))
        *(int64_t *)args->in[TRACKED] += 1;
    return 0;
}

static int eval_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pass pass = pass_of(own, args, EVAL_RESIDUAL);
    pass.mean = args->in[MEAN];
    pass.variance = args->in[VAR];
    team_for(units_of(&pass.view), grain_of(&pass.view), eval_units, &pass);
    return 0;
}

/* x, y and what is added lie as x comes where that is a grid, else plain. */
static int query(const struct node *node, const struct layout *const *in, struct arena *arena,
                 int residual, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, NULL, arena, ret_choice, err);
    if (rc)
        return rc;
    if (in[X]->block)
        ret_choice->in[X] = ret_choice->out[0] = in[X];
    struct view view = view_of(ret_choice->in[X]);
    ret_choice->scratch_bytes =
        (size_t)units_of(&view) * (sizeof(struct moments) + sizeof(struct factors));
    if (own_in(node, residual)) {
        ret_choice->in[residual] = ret_choice->in[X];
        ret_choice->inplace[0] = residual;
    }
    return 0;
}

static int relu_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                      struct kernel_choice *ret_choice, struct err *err)
{
    return query(node, in, arena, RESIDUAL, ret_choice, err);
}

static int eval_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                      struct kernel_choice *ret_choice, struct err *err)
{
    int rc = query(node, in, arena, EVAL_RESIDUAL, ret_choice, err);
    if (rc == 0)
        ret_choice->inplace[0] = X;
    return rc;
}

const struct kernel kernel_batch_norm_relu = {"batch_norm_relu", relu_query, own_create, relu_run,
                                              own_destroy};
const struct kernel kernel_batch_norm_relu_eval = {"batch_norm_relu_eval", eval_query, own_create,
                                                   eval_run, own_destroy};
