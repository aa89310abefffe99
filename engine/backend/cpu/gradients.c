/* gradients.c: zero, all_reduce (and its start), scale, clip_grad_norm: a run of gradient variables
 * as one flat buffer. */
#include <math.h>
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

/* From the first variable's begin to the last one's end; the variables between, and the gaps of
 * alignment, lie in it. */
static size_t flat_count(const struct own *own, const struct kernel_args *args)
{
    const float *first = args->in[0], *last = args->in[1];
    return (size_t)(last - first) + (size_t)shape_count(&own->node->in[1]->shape);
}

static void zero_span(int64_t begin, int64_t end, void *context)
{
    memset((float *)context + begin, 0, (size_t)(end - begin) * sizeof(float));
}

static int zero_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    team_for((int64_t)flat_count(state, args), OWN_GRAIN, zero_span, args->in[0]);
    return 0;
}

static int all_reduce_start_run(void *state, const struct kernel_args *args, struct err *err)
{
    struct collective *collective = args->collective;
    if (!collective)
        return 0;
    return collective->reduce_start(collective, args->in[0], flat_count(state, args), err);
}

static int all_reduce_run(void *state, const struct kernel_args *args, struct err *err)
{
    int rc = all_reduce_start_run(state, args, err);
    return rc || !args->collective ? rc : args->collective->reduce_finish(args->collective, err);
}

struct scaled {
    float *data;
    float scale;
};

static void scale_span(int64_t begin, int64_t end, void *context)
{
    const struct scaled *scaled = context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        scaled->data[i] *= scaled->scale;
}

static int scale_run(void *state, const struct kernel_args *args, struct err *err)
{
    struct scaled scaled = {args->in[0], (float)args->step->gradient_scale};
    (void)err;
    team_for((int64_t)flat_count(state, args), OWN_GRAIN, scale_span, &scaled);
    return 0;
}

/* Partial sums, as many for any number of threads. */
enum { NORM_PARTS = 256, NORM_LANES = 8 };

struct norm {
    const float *grad;
    int64_t count;
    double *part;
};

static double sum_squares(const float *x, int64_t n)
{
    double lane[NORM_LANES] = {0}, total = 0;
    int64_t whole = n / NORM_LANES * NORM_LANES;
    for (int64_t i = 0; i < whole; i += NORM_LANES)
        for (int k = 0; k < NORM_LANES; k++)
            lane[k] += (double)x[i + k] * (double)x[i + k];
    for (int64_t i = whole; i < n; i++)
        lane[0] += (double)x[i] * (double)x[i];
    for (int k = 0; k < NORM_LANES; k++)
        total += lane[k];
    return total;
}

static void norm_parts(int64_t begin, int64_t end, void *context)
{
    const struct norm *norm = context;
    int64_t size = (norm->count + NORM_PARTS - 1) / NORM_PARTS;
    for (int64_t p = begin; p < end; p++) {
        int64_t from = p * size < norm->count ? p * size : norm->count;
        int64_t n = norm->count - from < size ? norm->count - from : size;
        norm->part[p] = sum_squares(norm->grad + from, n);
    }
}

/* The gaps of alignment are zero and add nothing. */
static double sum_all_squares(const struct own *own, const struct kernel_args *args)
{
    struct norm norm = {args->in[0], (int64_t)flat_count(own, args), args->scratch};
    double total = 0;
    team_for(NORM_PARTS, NORM_PARTS * (int64_t)OWN_GRAIN / norm.count + 1, norm_parts, &norm);
    for (int p = 0; p < NORM_PARTS; p++)
        total += norm.part[p];
    return total;
}

/* torch.nn.utils.clip_grad_norm_. A stage without gradients has its part in the sum all the same.
 */
static int clip_grad_norm_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct clip_grad_norm_attr *attr = own->node->attr;
    double total = own->node->in[0] != NULL ? sum_all_squares(own, args) : 0;
    int rc = args->stages != NULL ? args->stages->sum(args->stages, &total, err) : 0;
    if (rc != 0)
        return rc;
    float scale = (float)(attr->max_norm / (sqrt(total) + 1e-6));
    *(float *)args->out[0] = scale > 1 ? 1 : scale;
    return 0;
}

static int clip_grad_norm_query(const struct node *node, const struct layout *const *in,
                                struct arena *arena, struct kernel_choice *ret_choice,
                                struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = NORM_PARTS * sizeof(double);
    return rc;
}

const struct kernel kernel_clip_grad_norm = {"clip_grad_norm", clip_grad_norm_query, own_create,
                                             clip_grad_norm_run, own_destroy};
const struct kernel kernel_scale = {"scale", own_query_plain, own_create, scale_run, own_destroy};
const struct kernel kernel_zero = {"zero", own_query_plain, own_create, zero_run, own_destroy};
const struct kernel kernel_all_reduce_start = {"all_reduce_start", own_query_plain, own_create,
                                               all_reduce_start_run, own_destroy};
const struct kernel kernel_all_reduce = {"all_reduce", own_query_plain, own_create, all_reduce_run,
                                         own_destroy};
