/* avg_pool2d.c: torch.nn.AvgPool2d and its gradient, in any grid layout.
 *
 * What a window's sum is divided by is PyTorch's: its part inside the input and, with
 * count_include_pad, inside the padding; or the divisor that the job gives.
 */
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/vector.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

struct pool {
    const struct avg_pool2d_attr *attr;
    struct grid x, y;
    float *at_x, *at_y; /* the tensors, or their gradients */
};

/* A window's rows or columns inside the input, and how many count. */
struct span {
    int64_t begin, end, counted;
};

static struct span span_of(const struct avg_pool2d_attr *attr, int axis, int64_t o, int64_t size)
{
    int64_t begin = o * attr->stride[axis] - attr->padding[axis];
    int64_t end = begin + attr->kernel_size[axis], padded = size + attr->padding[axis];
    end = end < padded ? end : padded;
    struct span span = {begin > 0 ? begin : 0, end < size ? end : size, end - begin};
    if (!attr->count_include_pad)
        span.counted = span.end - span.begin;
    return span;
}

static float window_factor(const struct avg_pool2d_attr *attr, struct span rows,
                           struct span columns)
{
    int64_t counted =
        attr->divisor_override ? attr->divisor_override : rows.counted * columns.counted;
    return 1 / (float)counted;
}

/* out[c] = factor * the sum over the window, for each of the block's channels. */
VECTOR_CLONES static void gather(const struct pool *pool, const float *plane, struct span rows,
                                 struct span columns, float factor, float *out)
{
    int64_t block = pool->x.block;
    for (int64_t c = 0; c < block; c++)
        out[c] = 0;
    for (int64_t h = rows.begin; h < rows.end; h++)
        for (int64_t w = columns.begin; w < columns.end; w++) {
            const float *x = plane + (h * pool->x.w + w) * block;
#pragma omp simd
            for (int64_t c = 0; c < block; c++)
                out[c] += x[c];
        }
    for (int64_t c = 0; c < block; c++)
        out[c] *= factor;
}

VECTOR_CLONES static void scatter(const struct pool *pool, float *plane, struct span rows,
                                  struct span columns, float factor, const float *gy)
{
    int64_t block = pool->x.block;
    for (int64_t h = rows.begin; h < rows.end; h++)
        for (int64_t w = columns.begin; w < columns.end; w++) {
            float *gx = plane + (h * pool->x.w + w) * block;
#pragma omp simd
            for (int64_t c = 0; c < block; c++)
                gx[c] += factor * gy[c];
        }
}

/* Rows of the output, counted over all samples and blocks. */
static void forward_rows(int64_t begin, int64_t end, void *context)
{
    const struct pool *pool = context;
    const struct grid *x = &pool->x, *y = &pool->y;
    for (int64_t r = begin; r < end; r++) {
        const float *plane = pool->at_x + r / y->h * x->h * x->w * x->block;
        struct span rows = span_of(pool->attr, 0, r % y->h, x->h);
        for (int64_t o = 0; o < y->w; o++) {
            struct span columns = span_of(pool->attr, 1, o, x->w);
            gather(pool, plane, rows, columns, window_factor(pool->attr, rows, columns),
                   pool->at_y + (r * y->w + o) * y->block);
        }
    }
}

static void grad_planes(int64_t begin, int64_t end, void *context)
{
    const struct pool *pool = context;
    const struct grid *x = &pool->x, *y = &pool->y;
    for (int64_t p = begin; p < end; p++) {
        float *plane = pool->at_x + p * x->h * x->w * x->block;
        memset(plane, 0, (size_t)(x->h * x->w * x->block) * sizeof(float));
        for (int64_t i = 0; i < y->h * y->w; i++) {
            struct span rows = span_of(pool->attr, 0, i / y->w, x->h);
            struct span columns = span_of(pool->attr, 1, i % y->w, x->w);
            scatter(pool, plane, rows, columns, window_factor(pool->attr, rows, columns),
                    pool->at_y + (p * y->h * y->w + i) * y->block);
        }
    }
}

static int avg_pool2d_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pool pool = {.attr = own->node->attr, .at_x = args->in[0], .at_y = args->out[0]};
    layout_grid(own->choice->in[0], &pool.x);
    layout_grid(own->choice->out[0], &pool.y);
    int64_t row = pool.y.w * pool.y.block;
    team_for(pool.y.n * pool.y.blocks * pool.y.h, OWN_GRAIN / row / 4 + 1, forward_rows, &pool);
    return 0;
}

static int avg_pool2d_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pool pool = {.attr = own->node->attr, .at_x = args->out[0], .at_y = args->in[0]};
    layout_grid(own->choice->out[0], &pool.x);
    layout_grid(own->choice->in[0], &pool.y);
    int64_t plane = pool.x.h * pool.x.w * pool.x.block;
    team_for(pool.x.n * pool.x.blocks, OWN_GRAIN / plane + 1, grad_planes, &pool);
    return 0;
}

const struct kernel kernel_avg_pool2d = {"avg_pool2d", own_query_resized, own_create,
                                         avg_pool2d_run, own_destroy};
const struct kernel kernel_avg_pool2d_grad = {"avg_pool2d_grad", own_query_resized, own_create,
                                              avg_pool2d_grad_run, own_destroy};
