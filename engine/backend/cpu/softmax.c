/* softmax.c: softmax, log_softmax and their gradients: torch.nn.Softmax and LogSoftmax.
 *
 * A tensor is [outer, n, inner], and n is normalised. Where inner is 1 a row is contiguous; else
 * neighbouring columns are normalised side by side. Sums are in float over the lanes of a vector,
 * in an order that depends on n alone. A NaN, or an infinity above, makes its whole row NaN, as in
 * PyTorch.
 */
#include <math.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/vector.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

enum { COLUMNS = 64 }; /* that are normalised side by side */

/* Of a forward a is x; of a gradient a is y and b is gy. */
struct softmax {
    const float *a, *b;
    float *out;
    int64_t n, inner;
};

VECTOR_CLONES static void softmax_row(const struct softmax *s, int64_t at)
{
    const float *x = s->a + at;
    float *y = s->out + at;
    int64_t n = s->n;
    float largest = vector_max(x, n), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        y[i] = vector_exp(x[i] - largest);
        sum += y[i];
    }
    float factor = 1 / sum;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

VECTOR_CLONES static void log_softmax_row(const struct softmax *s, int64_t at)
{
    const float *x = s->a + at;
    float *y = s->out + at;
    int64_t n = s->n;
    float largest = vector_max(x, n), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += vector_exp(x[i] - largest);
    float log_sum = logf(sum);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - largest - log_sum;
}

VECTOR_CLONES static void softmax_grad_row(const struct softmax *s, int64_t at)
{
    const float *y = s->a + at, *gy = s->b + at;
    float *gx = s->out + at;
    int64_t n = s->n;
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < n; i++)
        dot += y[i] * gy[i];
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        gx[i] = y[i] * (gy[i] - dot);
}

VECTOR_CLONES static void log_softmax_grad_row(const struct softmax *s, int64_t at)
{
    const float *y = s->a + at, *gy = s->b + at;
    float *gx = s->out + at;
    int64_t n = s->n;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += gy[i];
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        gx[i] = gy[i] - vector_exp(y[i]) * sum;
}

/* The same for `width` neighbouring columns, whose elements lie `inner` apart. */

/* The largest element and the sum of the exponentials of each column. */
VECTOR_INLINE void columns_sum(const float *x, int64_t n, int64_t inner, int64_t width,
                               float *largest, float *sum)
{
    for (int64_t c = 0; c < width; c++) {
        largest[c] = -INFINITY;
        sum[c] = 0;
    }
    for (int64_t i = 0; i < n; i++)
#pragma omp simd
        for (int64_t c = 0; c < width; c++) {
            float element = x[i * inner + c];
            largest[c] = element > largest[c] ? element : largest[c];
        }
    for (int64_t i = 0; i < n; i++)
#pragma omp simd
        for (int64_t c = 0; c < width; c++)
            sum[c] += vector_exp(x[i * inner + c] - largest[c]);
}

VECTOR_CLONES static void softmax_columns(const struct softmax *s, int64_t at, int64_t width)
{
    float largest[COLUMNS], sum[COLUMNS];
    columns_sum(s->a + at, s->n, s->inner, width, largest, sum);
    for (int64_t i = 0; i < s->n; i++) {
        const float *x = s->a + at + i * s->inner;
        float *y = s->out + at + i * s->inner;
#pragma omp simd
        for (int64_t c = 0; c < width; c++)
            y[c] = vector_exp(x[c] - largest[c]) / sum[c];
    }
}

VECTOR_CLONES static void log_softmax_columns(const struct softmax *s, int64_t at, int64_t width)
{
    float largest[COLUMNS], sum[COLUMNS];
    columns_sum(s->a + at, s->n, s->inner, width, largest, sum);
    for (int64_t c = 0; c < width; c++)
        sum[c] = logf(sum[c]);
    for (int64_t i = 0; i < s->n; i++) {
        const float *x = s->a + at + i * s->inner;
        float *y = s->out + at + i * s->inner;
#pragma omp simd
        for (int64_t c = 0; c < width; c++)
            y[c] = x[c] - largest[c] - sum[c];
    }
}

VECTOR_CLONES static void softmax_grad_columns(const struct softmax *s, int64_t at, int64_t width)
{
    float dot[COLUMNS] = {0};
    for (int64_t i = 0; i < s->n; i++)
#pragma omp simd
        for (int64_t c = 0; c < width; c++)
            dot[c] += s->a[at + i * s->inner + c] * s->b[at + i * s->inner + c];
    for (int64_t i = 0; i < s->n; i++) {
        const float *y = s->a + at + i * s->inner, *gy = s->b + at + i * s->inner;
        float *gx = s->out + at + i * s->inner;
#pragma omp simd
        for (int64_t c = 0; c < width; c++)
            gx[c] = y[c] * (gy[c] - dot[c]);
    }
}

VECTOR_CLONES static void log_softmax_grad_columns(const struct softmax *s, int64_t at,
                                                   int64_t width)
{
    float sum[COLUMNS] = {0};
    for (int64_t i = 0; i < s->n; i++)
#pragma omp simd
        for (int64_t c = 0; c < width; c++)
            sum[c] += s->b[at + i * s->inner + c];
    for (int64_t i = 0; i < s->n; i++) {
        const float *y = s->a + at + i * s->inner, *gy = s->b + at + i * s->inner;
        float *gx = s->out + at + i * s->inner;
#pragma omp simd
        for (int64_t c = 0; c < width; c++)
            gx[c] = gy[c] - vector_exp(y[c]) * sum[c];
    }
}

/* A work item is a row where inner is 1, else a group of columns. */
struct work {
    struct softmax softmax;
    int64_t groups; /* of columns, an outer index */
    void (*row)(const struct softmax *s, int64_t at);
    void (*columns)(const struct softmax *s, int64_t at, int64_t width);
};

static void work_span(int64_t begin, int64_t end, void *context)
{
    const struct work *work = context;
    const struct softmax *s = &work->softmax;
    for (int64_t i = begin; i < end; i++) {
        if (s->inner == 1) {
            work->row(s, i * s->n);
            continue;
        }
        int64_t column = i % work->groups * COLUMNS, left = s->inner - column;
        work->columns(s, i / work->groups * s->n * s->inner + column,
                      left < COLUMNS ? left : COLUMNS);
    }
}

static int run(const struct own *own, const struct kernel_args *args, struct work work)
{
    const struct softmax_attr *attr = own->node->attr;
    const struct shape *shape = &own->node->in[0]->shape;
    struct softmax *s = &work.softmax;
    int64_t outer = 1;
    *s = (struct softmax){
        .a = args->in[0],
        .b = own_in(own->node, 1) ? args->in[1] : NULL,
        .out = args->out[0],
        .n = shape->dim[attr->dim],
        .inner = 1,
    };
    for (int i = 0; i < attr->dim; i++)
        outer *= shape->dim[i];
    for (int i = attr->dim + 1; i < shape->rank; i++)
        s->inner *= shape->dim[i];
    work.groups = (s->inner + COLUMNS - 1) / COLUMNS;
    int64_t width = s->inner < COLUMNS ? s->inner : COLUMNS;
    team_for(outer * work.groups, OWN_GRAIN / (s->n * width) + 1, work_span, &work);
    return 0;
}

static int softmax_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return run(state, args, (struct work){.row = softmax_row, .columns = softmax_columns});
}

static int softmax_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return run(state, args,
               (struct work){.row = softmax_grad_row, .columns = softmax_grad_columns});
}

static int log_softmax_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return run(state, args, (struct work){.row = log_softmax_row, .columns = log_softmax_columns});
}

static int log_softmax_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return run(state, args,
               (struct work){.row = log_softmax_grad_row, .columns = log_softmax_grad_columns});
}

/* A row is read whole before its first element is written but for the exponentials, which overwrite
 * what they are of: the input's memory may be the output's. */
static int softmax_query(const struct node *node, const struct layout *const *in,
                         struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->inplace[0] = node->n_in - 1; /* gy, where there is one */
    return rc;
}

const struct kernel kernel_softmax = {"softmax", softmax_query, own_create, softmax_run,
                                      own_destroy};
const struct kernel kernel_softmax_grad = {"softmax_grad", softmax_query, own_create,
                                           softmax_grad_run, own_destroy};
const struct kernel kernel_log_softmax = {"log_softmax", softmax_query, own_create, log_softmax_run,
                                          own_destroy};
const struct kernel kernel_log_softmax_grad = {"log_softmax_grad", softmax_query, own_create,
                                               log_softmax_grad_run, own_destroy};
