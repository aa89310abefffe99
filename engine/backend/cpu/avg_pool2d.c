/* avg_pool2d.c: torch.nn.AvgPool2d and its gradient, in any grid layout.
 *
 * What a window's sum is divided by is PyTorch's: its part inside the input and, with
 * count_include_pad, inside the padding; or the divisor that the job gives.
 */
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/real.h"
#include "engine/ops/attr.h"

struct pool {
    const struct avg_pool2d_attr *attr;
    struct grid x, y;
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

static void forward_plane(const void *context, int64_t p, const float *plane, float *out)
{
    (void)p;
    const struct pool *pool = context;
    const struct grid *x = &pool->x, *y = &pool->y;
    for (int64_t i = 0; i < y->h * y->w; i++) {
        struct span rows = span_of(pool->attr, 0, i / y->w, x->h);
        struct span columns = span_of(pool->attr, 1, i % y->w, x->w);
        gather(pool, plane, rows, columns, window_factor(pool->attr, rows, columns),
               out + i * y->block);
    }
}

static void grad_plane(const void *context, int64_t p, const float *gy, float *plane)
{
    (void)p;
    const struct pool *pool = context;
    const struct grid *x = &pool->x, *y = &pool->y;
    memset(plane, 0, (size_t)(x->h * x->w * x->block) * sizeof(float));
    for (int64_t i = 0; i < y->h * y->w; i++) {
        struct span rows = span_of(pool->attr, 0, i / y->w, x->h);
        struct span columns = span_of(pool->attr, 1, i % y->w, x->w);
        scatter(pool, plane, rows, columns, window_factor(pool->attr, rows, columns),
                gy + i * y->block);
    }
}

static int avg_pool2d_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pool pool = {.attr = own->node->attr};
    layout_grid(own->choice->in[0], &pool.x);
    layout_grid(own->choice->out[0], &pool.y);
    real_planes_run(own, args, forward_plane, &pool);
    return 0;
}

static int avg_pool2d_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pool pool = {.attr = own->node->attr};
    layout_grid(own->choice->out[0], &pool.x);
    layout_grid(own->choice->in[0], &pool.y);
    real_planes_run(own, args, grad_plane, &pool);
    return 0;
}

const struct kernel kernel_avg_pool2d = {"avg_pool2d", own_query_resized, own_create,
                                         avg_pool2d_run, own_destroy};
const struct kernel kernel_avg_pool2d_grad = {"avg_pool2d_grad", own_query_resized, own_create,
                                              avg_pool2d_grad_run, own_destroy};
