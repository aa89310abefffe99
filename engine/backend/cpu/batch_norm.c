/* batch_norm.c: batch_norm, batch_norm_eval: torch.nn.BatchNorm1d and 2d; batch_norm_relu,
 * batch_norm_relu_eval: the same, a sum with another tensor where there is one, and a ReLU.
 *
 * Tasks (tasks.h) read x once for the statistics, a chunk at a time (mean and squared
 * deviations of each, joined as Chan, Golub and LeVeque do), and once more for y, backwards through
 * the samples: the last ones may be in a near cache still.
 * The spread is the variance. NaN stays NaN, as in relu. Together with a ReLU the bits are those of
 * a BatchNorm, an Add and a ReLU one by one.
 */
#include <math.h>

#include "engine/backend/cpu/tasks.h"
#include "engine/ops/attr.h"

enum { X, WEIGHT, BIAS, MEAN, VAR, TRACKED, RESIDUAL }; /* inputs; the last of batch_norm_relu */
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
    float lowest;                      /* y */
    bool streams;                      /* y goes past the caches */
    struct moments *moments;           /* by task */
    struct factors *factors;           /* by unit */
};

/* A y of that size is not in a cache any more when it is read again. It streams a few rows at a
 * time, so that memory is read while it is written. */
enum { STREAM_BYTES = 4 << 20, STREAM_ROWS = 16 };

VECTOR_INLINE void join(struct moments *all, int l, double count, double mean, double squares)
{
    double total = all->count[l] + count, off = mean - all->mean[l], part = count / total;
    all->mean[l] += off * part;
    all->squares[l] += squares + off * off * all->count[l] * part;
    all->count[l] = total;
}

/* Four sums of each lane: an addition need not wait for the one before. */
struct quad {
    float a[LANES], b[LANES], c[LANES], d[LANES];
};

VECTOR_INLINE float quad_sum(const struct quad *quad, int l)
{
    return quad->a[l] + quad->b[l] + (quad->c[l] + quad->d[l]);
}

VECTOR_INLINE float squared(float x)
{
    return x * x;
}

/* The chunk is in a cache after the first loop: what is fetched by the second is of the next. */
static VECTOR_CLONES void add_moments(const float *x, const struct chunk *chunk,
                                      struct moments *moments)
{
    int64_t rows = chunk->rows, quads = rows / 4 * 4;
    struct quad sum = {.a = {0}}, squares = {.a = {0}};
    float mean[LANES];
    for (int64_t i = 0; i < quads * LANES; i += 4 * LANES) {
        const float *row = x + i;
        for (int k = 0; k < 4; k++)
            __builtin_prefetch(row + k * LANES + CHUNK_AHEAD);
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            sum.a[l] += row[l];
            sum.b[l] += row[LANES + l];
            sum.c[l] += row[2 * LANES + l];
            sum.d[l] += row[3 * LANES + l];
        }
    }
    for (int64_t i = quads; i < rows; i++)
        for (int l = 0; l < LANES; l++)
            sum.a[l] += x[i * LANES + l];
    for (int l = 0; l < LANES; l++)
        mean[l] = quad_sum(&sum, l) / (float)rows;
    for (int64_t i = 0; i < quads * LANES; i += 4 * LANES) {
        const float *row = x + i;
        for (int k = 0; k < 4; k++)
            __builtin_prefetch(row + k * LANES + CHUNK_FLOATS + CHUNK_AHEAD);
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            squares.a[l] += squared(row[l] - mean[l]);
            squares.b[l] += squared(row[LANES + l] - mean[l]);
            squares.c[l] += squared(row[2 * LANES + l] - mean[l]);
            squares.d[l] += squared(row[3 * LANES + l] - mean[l]);
        }
    }
    for (int64_t i = quads; i < rows; i++)
        for (int l = 0; l < LANES; l++)
            squares.a[l] += squared(x[i * LANES + l] - mean[l]);
    if (chunk->lanes == LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            join(moments, l, (double)rows, (double)mean[l], (double)quad_sum(&squares, l));
    else
        for (int l = 0; l < chunk->lanes; l++)
            join(moments, l, (double)rows, (double)mean[l], (double)quad_sum(&squares, l));
}

/* The running statistics as PyTorch moves them: the unbiased variance, in double. */
static void track(const struct pass *pass, int64_t c, double mean, double squares, double count)
{
    double keep = 1 - pass->momentum;
    pass->running_mean[c] = (float)(pass->momentum * mean + keep * (double)pass->running_mean[c]);
    pass->running_var[c] =
        (float)(pass->momentum * squares / (count - 1) + keep * (double)pass->running_var[c]);
}

static void add_chunk(const void *context, const struct chunk *chunk, int64_t task, int64_t u)
{
    const struct pass *pass = context;
    float room[CHUNK_FLOATS];
    (void)u;
    add_moments(chunk_load(pass->x, chunk, room), chunk, &pass->moments[task]);
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

/* What a sum reads of a BatchNorm in BF16 is rounded: `rounds`. */
VECTOR_INLINE void normalise(const float *x, const float *residual, int64_t rows,
                             const struct factors *factors, float lowest, bool rounds, float *y)
{
    for (int64_t i = 0; i < rows * LANES; i += LANES) {
        __builtin_prefetch(x + i + CHUNK_AHEAD);
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            float value = (x[i + l] - factors->mean[l]) * factors->scale[l] + factors->bias[l];
            if (residual)
                value = (rounds ? real_widen(real_round(value)) : value) + residual[i + l];
            y[i + l] = value < lowest ? lowest : value;
        }
    }
}

static VECTOR_CLONES void normalise_rows(const float *x, const float *residual, int64_t rows,
                                         const struct factors *factors, float lowest, bool rounds,
                                         float *y)
{
    if (!residual)
        normalise(x, NULL, rows, factors, lowest, false, y);
    else if (rounds)
        normalise(x, residual, rows, factors, lowest, true, y);
    else
        normalise(x, residual, rows, factors, lowest, false, y);
}

static void normalise_chunk(const void *context, const struct chunk *chunk, int64_t task, int64_t u)
{
    const struct pass *pass = context;
    float x_room[CHUNK_FLOATS], residual_room[CHUNK_FLOATS], y_room[CHUNK_FLOATS];
    const float *x = chunk_load(pass->x, chunk, x_room);
    const float *residual =
        pass->residual.at ? chunk_load(pass->residual, chunk, residual_room) : NULL;
    int64_t most = pass->streams ? STREAM_ROWS : chunk->rows;
    struct chunk part = *chunk;
    (void)task;
    for (int64_t i = 0; i < chunk->rows; i += most) {
        part.at = chunk->at + i * chunk->stride;
        part.rows = chunk->rows - i < most ? chunk->rows - i : most;
        float *y = pass->streams ? y_room : chunk_rows(pass->y, &part, y_room);
        normalise_rows(x + i * LANES, residual ? residual + i * LANES : NULL, part.rows,
                       &pass->factors[u], pass->lowest, pass->x.low, y);
        chunk_store(pass->y, &part, y);
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

static void factor_unit(const void *context, int64_t u)
{
    const struct pass *pass = context;
    struct unit unit = unit_at(&pass->view, u);
    find_factors(pass, &unit, &pass->factors[u]);
}

static void settle_unit(const void *context, int64_t u)
{
    const struct pass *pass = context;
    struct unit unit = unit_at(&pass->view, u);
    struct moments *all = &pass->moments[u], *block = all;
    for (int64_t b = 1; b < blocks_of(&pass->view); b++) {
        block += units_of(&pass->view);
        for (int l = 0; l < LANES && block->count[l] > 0; l++)
            join(all, l, block->count[l], block->mean[l], block->squares[l]);
    }
    settle_statistics(pass, &unit, all);
    find_factors(pass, &unit, &pass->factors[u]);
}

static struct pass pass_of(const struct own *own, const struct kernel_args *args, int residual,
                           float lowest)
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
        .lowest = lowest,
    };
    if (own_in(node, residual))
        pass.residual = real_of(args->in[residual], own->choice->in[residual]);
    pass.streams = own->choice->out[0]->bytes >= STREAM_BYTES && pass.y.at != pass.residual.at &&
                   pass.y.at != pass.x.at;
    pass.moments = args->scratch;
    pass.factors = (struct factors *)(pass.moments + tasks_of(&pass.view));
    return pass;
}

static int train(const struct own *own, const struct kernel_args *args, float lowest)
{
    struct pass pass = pass_of(own, args, RESIDUAL, lowest);
    const struct view *view = &pass.view;
    pass.mean = args->out[1];
    pass.variance = args->out[2];
    if (own_in(own->node, MEAN)) {
        pass.running_mean = args->in[MEAN];
        pass.running_var = args->in[VAR];
    }
    memset(pass.moments, 0, (size_t)tasks_of(view) * sizeof *pass.moments);
    tasks_run(view, TASKS_FORTH, add_chunk, &pass);
    tasks_units(view, settle_unit, &pass);
    tasks_run(view, TASKS_BACK, normalise_chunk, &pass);
    if (own_in(own->node, TRACKED))
        *(int64_t *)args->in[TRACKED] += 1;
    return 0;
}

static int evaluate(const struct own *own, const struct kernel_args *args, float lowest)
{
    struct pass pass = pass_of(own, args, EVAL_RESIDUAL, lowest);
    pass.mean = args->in[MEAN];
    pass.variance = args->in[VAR];
    tasks_units(&pass.view, factor_unit, &pass);
    tasks_run(&pass.view, TASKS_BACK, normalise_chunk, &pass);
    return 0;
}

static int run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return train(state, args, -INFINITY);
}

static int relu_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return train(state, args, 0);
}

static int eval_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return evaluate(state, args, -INFINITY);
}

static int relu_eval_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return evaluate(state, args, 0);
}

/* x, y and what is added lie as x comes where that is a grid, else plain. */
static int query_all(const struct node *node, const struct layout *const *in, struct arena *arena,
                     int residual, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, NULL, arena, ret_choice, err);
    if (rc)
        return rc;
    if (in[X]->block)
        ret_choice->in[X] = ret_choice->out[0] = in[X];
    struct view view = view_of(ret_choice->in[X]);
    ret_choice->scratch_bytes = (size_t)tasks_of(&view) * sizeof(struct moments) +
                                (size_t)units_of(&view) * sizeof(struct factors);
    if (own_in(node, residual)) {
        ret_choice->in[residual] = ret_choice->in[X];
        ret_choice->inplace[0] = residual;
    }
    return 0;
}

static int query(const struct node *node, const struct layout *const *in, struct arena *arena,
                 struct kernel_choice *ret_choice, struct err *err)
{
    return query_all(node, in, arena, RESIDUAL, ret_choice, err);
}

static int eval_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                      struct kernel_choice *ret_choice, struct err *err)
{
    int rc = query_all(node, in, arena, EVAL_RESIDUAL, ret_choice, err);
    if (rc == 0)
        ret_choice->inplace[0] = X;
    return rc;
}

const struct kernel kernel_batch_norm = {"batch_norm", query, own_create, run, own_destroy};
const struct kernel kernel_batch_norm_eval = {"batch_norm_eval", eval_query, own_create, eval_run,
                                              own_destroy};
const struct kernel kernel_batch_norm_relu = {"batch_norm_relu", query, own_create, relu_run,
                                              own_destroy};
const struct kernel kernel_batch_norm_relu_eval = {"batch_norm_relu_eval", eval_query, own_create,
                                                   relu_eval_run, own_destroy};
