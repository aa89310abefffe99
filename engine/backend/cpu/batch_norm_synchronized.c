/* batch_norm_synchronized.c: batch_norm_statistics, batch_norm_combine, batch_norm_sums,
 * batch_norm_sums_grad: the parts of a BatchNorm that is one over several replicas.
 *
 * Sums run over x as it lies, some channels at a time, in float over a short run and in double over
 * the runs.
 */
#include <math.h>

#include "engine/backend/cpu/channels.h"
#include "engine/backend/cpu/vector.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

enum { RUN = 32 };

/* Σ a and Σ (a - center_a) (b - center_b), a lane each. */
struct sums {
    double first[LANES], second[LANES];
};

static VECTOR_CLONES void add_run(const float *a, const float *b, int64_t steps, int64_t stride,
                                  const float *center_a, const float *center_b, struct sums *sums)
{
    float first[LANES] = {0}, second[LANES] = {0};
    for (int64_t i = 0; i < steps; i++)
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            float x = a[i * stride + l];
            first[l] += x;
            second[l] += (x - center_a[l]) * (b[i * stride + l] - center_b[l]);
        }
    for (int l = 0; l < LANES; l++) {
        sums->first[l] += (double)first[l];
        sums->second[l] += (double)second[l];
    }
}

/* The same for fewer lanes. */
static void add_narrow(const float *a, const float *b, int64_t steps, int64_t stride, int lanes,
                       const float *center_a, const float *center_b, struct sums *sums)
{
    for (int64_t i = 0; i < steps; i++)
        for (int l = 0; l < lanes; l++) {
            double x = (double)a[i * stride + l];
            sums->first[l] += x;
            sums->second[l] +=
                (x - (double)center_a[l]) * ((double)b[i * stride + l] - (double)center_b[l]);
        }
}

static void add_steps(const float *a, const float *b, int64_t steps, int64_t stride, int lanes,
                      const float *center_a, const float *center_b, struct sums *sums)
{
    if (lanes < LANES) {
        add_narrow(a, b, steps, stride, lanes, center_a, center_b, sums);
        return;
    }
    for (int64_t i = 0; i < steps; i += RUN)
        add_run(a + i * stride, b + i * stride, steps - i < RUN ? steps - i : RUN, stride, center_a,
                center_b, sums);
}

/* One channel whose values lie side by side: lanes are taken from them. */
static void add_plane(const float *a, const float *b, int64_t steps, float center_a, float center_b,
                      struct sums *sums)
{
    float centers_a[LANES], centers_b[LANES];
    struct sums lanes = {0};
    int64_t whole = steps / LANES;
    for (int l = 0; l < LANES; l++) {
        centers_a[l] = center_a;
        centers_b[l] = center_b;
    }
    add_steps(a, b, whole, LANES, LANES, centers_a, centers_b, &lanes);
    add_narrow(a + whole * LANES, b + whole * LANES, 1, LANES, (int)(steps % LANES), centers_a,
               centers_b, &lanes);
    for (int l = 0; l < LANES; l++) {
        sums->first[0] += lanes.first[l];
        sums->second[0] += lanes.second[l];
    }
}

static struct sums sum_unit(const struct view *view, const struct unit *unit, const float *a,
                            const float *b, const float *center_a, const float *center_b)
{
    struct sums sums = {0};
    for (int64_t n = 0; n < view->n; n++) {
        int64_t at = (n * view->groups + unit->group) * view->steps * view->width + unit->lane;
        if (view->width == 1)
            add_plane(a + at, b + at, view->steps, center_a[0], center_b[0], &sums);
        else
            add_steps(a + at, b + at, view->steps, view->width, unit->lanes, center_a, center_b,
                      &sums);
    }
    return sums;
}

struct statistics {
    struct view view;
    const float *x;
    float *mean, *squares;
};

static void statistics_units(int64_t begin, int64_t end, void *context)
{
    const struct statistics *statistics = context;
    const struct view *view = &statistics->view;
    double count = (double)(view->n * view->steps);
    const float zero[LANES] = {0};
    for (int64_t u = begin; u < end; u++) {
        struct unit unit = unit_at(view, u);
        float mean[LANES];
        struct sums sums = sum_unit(view, &unit, statistics->x, statistics->x, zero, zero);
        for (int l = 0; l < LANES; l++)
            mean[l] = (float)(sums.first[l] / count);
        sums = sum_unit(view, &unit, statistics->x, statistics->x, mean, mean);
        for (int l = 0; l < real_lanes(view, &unit); l++) {
            statistics->mean[unit.channel + l] = mean[l];
            statistics->squares[unit.channel + l] = (float)sums.second[l];
        }
    }
}

static int statistics_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct statistics statistics = {.view = view_of(own->choice->in[0]), .x = args->in[0]};
    const struct view *view = &statistics.view;
    float *out = args->out[0];
    out[0] = (float)(view->n * view->steps);
    statistics.mean = out + 1;
    statistics.squares = out + 1 + view->channels;
    team_for(units_of(view), grain_of(view), statistics_units, &statistics);
    return 0;
}

/* The running statistics as PyTorch moves them: the unbiased variance, in double. */
static void track(const struct node *node, const struct kernel_args *args, int64_t c, double mean,
                  double squares, double count)
{
    const struct batch_norm_attr *attr = node->attr;
    float *running_mean = args->in[1], *running_var = args->in[2];
    double momentum = attr->momentum;
    running_mean[c] = (float)(momentum * mean + (1 - momentum) * (double)running_mean[c]);
    running_var[c] =
        (float)(momentum * squares / (count - 1) + (1 - momentum) * (double)running_var[c]);
}

/* Chan, Golub, LeVeque: the moments of a union from those of its parts, in the replicas' order. */
static int combine_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct node *node = ((const struct own *)state)->node;
    int64_t replicas = node->in[0]->shape.dim[0], size = node->in[0]->shape.dim[1];
    int64_t channels = (size - 1) / 2;
    const float *all = args->in[0];
    float *mean = args->out[0], *variance = args->out[1];
    double count = 0;
    for (int64_t r = 0; r < replicas; r++)
        count += (double)all[r * size];
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0, squares = 0;
        for (int64_t r = 0; r < replicas; r++)
            sum += (double)all[r * size] * (double)all[r * size + 1 + c];
        for (int64_t r = 0; r < replicas; r++) {
            double off = (double)all[r * size + 1 + c] - sum / count;
            squares += (double)all[r * size + 1 + channels + c] + (double)all[r * size] * off * off;
        }
        mean[c] = (float)(sum / count);
        variance[c] = (float)(squares / count);
        if (own_in(node, 1))
            track(node, args, c, sum / count, squares, count);
    }
    if (own_in(node, 3))
        *(int64_t *)args->in[3] += 1;
    *(float *)args->out[2] = (float)count;
    return 0;
}

enum { GRAD_X, GRAD_GY, GRAD_MEAN, GRAD_VARIANCE }; /* inputs of batch_norm_sums */

struct grad_sums {
    struct view view;
    double eps;
    const float *x, *gy, *mean, *variance;
    float *sum, *dot;
};

static void grad_sums_units(int64_t begin, int64_t end, void *context)
{
    const struct grad_sums *grad = context;
    const struct view *view = &grad->view;
    const float zero[LANES] = {0};
    for (int64_t u = begin; u < end; u++) {
        struct unit unit = unit_at(view, u);
        int lanes = real_lanes(view, &unit);
        float mean[LANES] = {0};
        memcpy(mean, grad->mean + unit.channel, (size_t)lanes * sizeof *mean);
        struct sums sums = sum_unit(view, &unit, grad->gy, grad->x, zero, mean);
        for (int l = 0; l < lanes; l++) {
            int64_t c = unit.channel + l;
            grad->sum[c] = (float)sums.first[l];
            grad->dot[c] = (float)(sums.second[l] / sqrt((double)grad->variance[c] + grad->eps));
        }
    }
}

static int sums_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct batch_norm_attr *attr = own->node->attr;
    struct grad_sums grad = {.view = view_of(own->choice->in[GRAD_X]),
                             .eps = attr->eps,
                             .x = args->in[GRAD_X],
                             .gy = args->in[GRAD_GY],
                             .mean = args->in[GRAD_MEAN],
                             .variance = args->in[GRAD_VARIANCE],
                             .sum = args->out[0]};
    size_t bytes = (size_t)grad.view.channels * sizeof(float);
    grad.dot = grad.sum + grad.view.channels;
    team_for(units_of(&grad.view), grain_of(&grad.view), grad_sums_units, &grad);
    if (own_out(own->node, 1))
        memcpy(args->out[1], grad.dot, bytes);
    if (own_out(own->node, 2))
        memcpy(args->out[2], grad.sum, bytes);
    return 0;
}

enum { INTO_X, INTO_GY, INTO_WEIGHT, INTO_MEAN, INTO_VARIANCE, INTO_SUMS, INTO_COUNT };

/* gx = scale * gy + slope * (x - mean) + shift, a channel each. */
struct affine {
    struct view view;
    const float *x, *gy;
    float *gx, *scale, *slope, *mean, *shift;
};

static VECTOR_CLONES void affine_row(const struct affine *affine, int64_t at, int64_t c)
{
    const float *x = affine->x + at, *gy = affine->gy + at;
    const float *scale = affine->scale + c, *slope = affine->slope + c;
    const float *mean = affine->mean + c, *shift = affine->shift + c;
    float *gx = affine->gx + at;
    int64_t steps = affine->view.steps, width = affine->view.width;
    if (width == 1) {
#pragma omp simd
        for (int64_t i = 0; i < steps; i++)
            gx[i] = scale[0] * gy[i] + slope[0] * (x[i] - mean[0]) + shift[0];
        return;
    }
    for (int64_t i = 0; i < steps * width; i += width)
#pragma omp simd
        for (int64_t l = 0; l < width; l++)
            gx[i + l] = scale[l] * gy[i + l] + slope[l] * (x[i + l] - mean[l]) + shift[l];
}

static void affine_rows(int64_t begin, int64_t end, void *context)
{
    const struct affine *affine = context;
    const struct view *view = &affine->view;
    for (int64_t r = begin; r < end; r++)
        affine_row(affine, r * view->steps * view->width, r % view->groups * view->width);
}

static void fill(const struct own *own, const struct kernel_args *args, struct affine *affine)
{
    const struct batch_norm_attr *attr = own->node->attr;
    const float *weight = own_in(own->node, INTO_WEIGHT) ? args->in[INTO_WEIGHT] : NULL;
    const float *mean = args->in[INTO_MEAN], *variance = args->in[INTO_VARIANCE];
    const float *sum = args->in[INTO_SUMS], *dot = sum + affine->view.channels;
    double count = (double)*(const float *)args->in[INTO_COUNT];
    for (int64_t c = 0; c < affine->view.channels; c++) {
        double inverse = 1 / sqrt((double)variance[c] + attr->eps);
        double scale = (weight ? (double)weight[c] : 1) * inverse;
        affine->scale[c] = (float)scale;
        affine->slope[c] = (float)(-scale * inverse * (double)dot[c] / count);
        affine->mean[c] = mean[c];
        affine->shift[c] = (float)(-scale * (double)sum[c] / count);
    }
}

/* Channels as the grid has them, with those that fill up a block: all their factors are zero. */
static size_t padded(const struct view *view)
{
    return (size_t)(view->groups * view->width);
}

static int sums_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct affine affine = {.view = view_of(own->choice->in[INTO_X]),
                            .x = args->in[INTO_X],
                            .gy = args->in[INTO_GY],
                            .gx = args->out[0],
                            .scale = args->scratch};
    const struct view *view = &affine.view;
    size_t room = padded(view);
    memset(affine.scale, 0, 4 * room * sizeof(float));
    affine.slope = affine.scale + room;
    affine.mean = affine.slope + room;
    affine.shift = affine.mean + room;
    fill(own, args, &affine);
    team_for(view->n * view->groups, OWN_GRAIN / (view->steps * view->width) + 1, affine_rows,
             &affine);
    return 0;
}

/* x, and what has its shape, lie as x comes where that is a grid, else plain. */
static int query_x(const struct node *node, const struct layout *const *in, struct arena *arena,
                   struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0 && in[0]->block)
        ret_choice->in[0] = in[0];
    return rc;
}

static int query_x_gy(const struct node *node, const struct layout *const *in, struct arena *arena,
                      struct kernel_choice *ret_choice, struct err *err)
{
    int rc = query_x(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->in[GRAD_GY] = ret_choice->in[GRAD_X];
    return rc;
}

static int query_gx(const struct node *node, const struct layout *const *in, struct arena *arena,
                    struct kernel_choice *ret_choice, struct err *err)
{
    int rc = query_x_gy(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    struct view view = view_of(ret_choice->in[INTO_X]);
    ret_choice->out[0] = ret_choice->in[INTO_X];
    ret_choice->inplace[0] = INTO_GY;
    ret_choice->scratch_bytes = 4 * padded(&view) * sizeof(float);
    return 0;
}

const struct kernel kernel_batch_norm_statistics = {"batch_norm_statistics", query_x, own_create,
                                                    statistics_run, own_destroy};
const struct kernel kernel_batch_norm_combine = {"batch_norm_combine", own_query_plain, own_create,
                                                 combine_run, own_destroy};
const struct kernel kernel_batch_norm_sums = {"batch_norm_sums", query_x_gy, own_create, sums_run,
                                              own_destroy};
const struct kernel kernel_batch_norm_sums_grad = {"batch_norm_sums_grad", query_gx, own_create,
                                                   sums_grad_run, own_destroy};
