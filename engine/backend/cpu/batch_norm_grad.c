/* batch_norm_grad.c: batch_norm_grad, batch_norm_relu_grad.
 *
 * Where y was positive is told by x: the same arithmetic is done once more, and y may be dead by
 * now. Only with a residual is y read, once: what passes the ReLU is the residual's gradient, and
 * goes on from there. Without a ReLU all passes. Tasks (tasks.h) read x and gy once for their sums
 * and once for gx. The bits are those of the ReLU's, the sum's and BatchNorm's gradient
 * one by one.
 */
#include <math.h>

#include "engine/backend/cpu/tasks.h"
#include "engine/ops/attr.h"

enum { X, GY, WEIGHT, BIAS, MEAN, VARIANCE, Y };    /* inputs of batch_norm_relu_grad */
enum { PLAIN_MEAN = 3, PLAIN_VARIANCE };            /* of batch_norm_grad */
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

enum gate { OPEN, BY_X, BY_Y }; /* what tells what of gy passes */

struct pass {
    struct view view;
    double eps;
    struct real x, gy, y, gx; /* y: BY_Y */
    struct real passed;       /* the residual's gradient */
    const float *weight, *bias, *mean, *variance;
    float *grad_weight, *grad_bias; /* NULL: not wanted */
    enum gate gate;
    float shut;              /* BY_X: gy passes where y is above */
    struct sums *sums;       /* by task */
    struct factors *factors; /* by unit */
};

/* Above 0, in BF16 above what is rounded to 0. */
static const float shut_f32 = 0, shut_bf16 = 0x1p-134f;

/* A chunk's rows. */
struct rows {
    const float *x, *gy, *y; /* y: BY_Y */
    float *g;                /* BY_Y: what passes is left there */
    int64_t n;
    float shut;
};

struct partial {
    float all[LANES], dot[LANES];
};

VECTOR_INLINE float pass_by_x(const struct factors *factors, int l, float shut, float x, float gy)
{
    float y = (x - factors->mean[l]) * factors->scale[l] + factors->bias[l];
    return y <= shut ? 0 : gy;
}

VECTOR_INLINE void add_row(enum gate gate, const struct rows *rows, int64_t i,
                           const struct factors *factors, struct partial *sum)
{
    const float *x = rows->x + i, *gy = rows->gy + i, *y = gate == BY_Y ? rows->y + i : x;
    __builtin_prefetch(x + CHUNK_AHEAD);
    __builtin_prefetch(gy + CHUNK_AHEAD);
    if (gate == BY_Y)
        __builtin_prefetch(y + CHUNK_AHEAD);
#pragma omp simd
    for (int l = 0; l < LANES; l++) {
        float g = gy[l]; /* read in any case: a condition would cost the vectors */
        if (gate == BY_X)
            g = pass_by_x(factors, l, rows->shut, x[l], g);
        if (gate == BY_Y)
            rows->g[i + l] = g = y[l] <= 0 ? 0 : g;
        sum->all[l] += g;
        sum->dot[l] += g * (x[l] - factors->mean[l]);
    }
}

/* Two sums each: an addition need not wait for the one before. */
VECTOR_INLINE void add_gated(enum gate gate, const struct rows *rows, const struct factors *factors,
                             struct sums *sums)
{
    struct partial even = {.all = {0}}, odd = {.all = {0}};
    int64_t paired = rows->n / 2 * 2 * LANES;
    for (int64_t i = 0; i < paired; i += 2 * LANES) {
        add_row(gate, rows, i, factors, &even);
        add_row(gate, rows, i + LANES, factors, &odd);
    }
    if (paired < rows->n * LANES)
        add_row(gate, rows, paired, factors, &even);
#pragma omp simd
    for (int l = 0; l < LANES; l++) {
        sums->all[l] += (double)(even.all[l] + odd.all[l]);
        sums->dot[l] += (double)(even.dot[l] + odd.dot[l]);
    }
}

static VECTOR_CLONES void add_rows(enum gate gate, const struct rows *rows,
                                   const struct factors *factors, struct sums *sums)
{
    const struct rows own = *rows; /* g's stores cannot have changed it */
    if (gate == OPEN)
        add_gated(OPEN, &own, factors, sums);
    else if (gate == BY_X)
        add_gated(BY_X, &own, factors, sums);
    else
        add_gated(BY_Y, &own, factors, sums);
}

VECTOR_INLINE void write_gated(enum gate gate, const struct rows *rows,
                               const struct factors *restrict factors, float *gx)
{
    for (int64_t i = 0; i < rows->n * LANES; i += LANES)
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            float x = rows->x[i + l], g = rows->gy[i + l];
            if (gate == BY_X)
                g = pass_by_x(factors, l, rows->shut, x, g);
            gx[i + l] = factors->scale[l] * g + factors->slope[l] * (x - factors->mean[l]) +
                        factors->shift[l];
        }
}

static VECTOR_CLONES void write_rows(enum gate gate, const struct rows *rows,
                                     const struct factors *factors, float *gx)
{
    const struct rows own = *rows;
    if (gate == BY_X)
        write_gated(BY_X, &own, factors, gx);
    else
        write_gated(OPEN, &own, factors, gx);
}

/* The chunk's part of the sums, and with a residual its gradient, which gx is made from then. */
static void add_chunk(const void *context, const struct chunk *chunk, int64_t task, int64_t u)
{
    const struct pass *pass = context;
    float x_room[CHUNK_FLOATS], gy_room[CHUNK_FLOATS], y_room[CHUNK_FLOATS], g_room[CHUNK_FLOATS];
    struct rows rows = {.x = chunk_load(pass->x, chunk, x_room),
                        .gy = chunk_load(pass->gy, chunk, gy_room),
                        .n = chunk->rows,
                        .shut = pass->shut};
    if (pass->gate == BY_Y) {
        rows.y = chunk_load(pass->y, chunk, y_room);
        rows.g = chunk_rows(pass->passed, chunk, g_room);
    }
    add_rows(pass->gate, &rows, &pass->factors[u], &pass->sums[task]);
    if (pass->gate == BY_Y)
        chunk_store(pass->passed, chunk, rows.g);
}

static void write_chunk(const void *context, const struct chunk *chunk, int64_t task, int64_t u)
{
    const struct pass *pass = context;
    float x_room[CHUNK_FLOATS], g_room[CHUNK_FLOATS], gx_room[CHUNK_FLOATS];
    struct real g = pass->gate == BY_Y ? pass->passed : pass->gy;
    struct rows rows = {.x = chunk_load(pass->x, chunk, x_room),
                        .gy = chunk_load(g, chunk, g_room),
                        .n = chunk->rows,
                        .shut = pass->shut};
    float *gx = chunk_rows(pass->gx, chunk, gx_room);
    (void)task;
    write_rows(pass->gate, &rows, &pass->factors[u], gx);
    chunk_store(pass->gx, chunk, gx);
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
    struct sums *all = &pass->sums[u], *block = all;
    for (int64_t b = 1; b < blocks_of(&pass->view); b++) {
        block += units_of(&pass->view);
        for (int l = 0; l < LANES; l++) {
            all->all[l] += block->all[l];
            all->dot[l] += block->dot[l];
        }
    }
    settle(pass, &unit, all, &pass->factors[u]);
}

static void run_pass(struct pass *pass, void *scratch)
{
    const struct view *view = &pass->view;
    pass->sums = scratch;
    pass->factors = (struct factors *)(pass->sums + tasks_of(view));
    memset(pass->sums, 0, (size_t)tasks_of(view) * sizeof *pass->sums);
    tasks_units(view, factor_unit, pass);
    tasks_run(view, TASKS_FORTH, add_chunk, pass);
    tasks_units(view, settle_unit, pass);
    tasks_run(view, TASKS_BACK, write_chunk, pass);
}

/* What both have. */
static struct pass pass_of(const struct own *own, const struct kernel_args *args)
{
    const struct node *node = own->node;
    const struct batch_norm_attr *attr = node->attr;
    return (struct pass){
        .view = view_of(own->choice->in[X]),
        .eps = attr->eps,
        .x = real_of(args->in[X], own->choice->in[X]),
        .gy = real_of(args->in[GY], own->choice->in[GY]),
        .gx = real_of(args->out[GX], own->choice->out[GX]),
        .weight = own_in(node, WEIGHT) ? args->in[WEIGHT] : NULL,
        .grad_weight = own_out(node, GRAD_WEIGHT) ? args->out[GRAD_WEIGHT] : NULL,
        .grad_bias = own_out(node, GRAD_BIAS) ? args->out[GRAD_BIAS] : NULL,
    };
}

static int run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    struct pass pass = pass_of(state, args);
    pass.mean = args->in[PLAIN_MEAN];
    pass.variance = args->in[PLAIN_VARIANCE];
    run_pass(&pass, args->scratch);
    return 0;
}

static int relu_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pass pass = pass_of(own, args);
    pass.bias = own_in(own->node, BIAS) ? args->in[BIAS] : NULL;
    pass.mean = args->in[MEAN];
    pass.variance = args->in[VARIANCE];
    pass.gate = BY_X;
    pass.shut = pass.x.low ? shut_bf16 : shut_f32;
    if (own_in(own->node, Y)) {
        pass.gate = BY_Y;
        pass.y = real_of(args->in[Y], own->choice->in[Y]);
        pass.passed = real_of(args->out[GRAD_RESIDUAL], own->choice->out[GRAD_RESIDUAL]);
    }
    run_pass(&pass, args->scratch);
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
    ret_choice->scratch_bytes = (size_t)tasks_of(&view) * sizeof(struct sums) +
                                (size_t)units_of(&view) * sizeof(struct factors);
    ret_choice->in[GY] = ret_choice->out[GX] = ret_choice->in[X];
    ret_choice->inplace[GX] = GY;
    if (own_in(node, Y)) {
        ret_choice->in[Y] = ret_choice->out[GRAD_RESIDUAL] = ret_choice->in[X];
        ret_choice->inplace[GX] = X;
        ret_choice->inplace[GRAD_RESIDUAL] = GY;
    }
    return 0;
}

const struct kernel kernel_batch_norm_grad = {"batch_norm_grad", query, own_create, run,
                                              own_destroy};
const struct kernel kernel_batch_norm_relu_grad = {"batch_norm_relu_grad", query, own_create,
                                                   relu_run, own_destroy};
