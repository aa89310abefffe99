/* adaptive_avg_pool2d.c: torch.nn.AdaptiveAvgPool2d and its gradient, in any grid layout.
 *
 * Output i averages the inputs from floor(i * in / out) up to ceil((i + 1) * in / out):
 * neighbouring bins may share an input.
 */
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/real.h"

struct pool {
    struct grid x, y;
};

struct bin {
    int64_t begin, end;
};

static struct bin bin_of(int64_t i, int64_t n_in, int64_t n_out)
{
    return (struct bin){i * n_in / n_out, ((i + 1) * n_in + n_out - 1) / n_out};
}

static float average(const struct pool *pool, const float *plane, struct bin rows,
                     struct bin columns)
{
    double total = 0;
    for (int64_t h = rows.begin; h < rows.end; h++)
        for (int64_t w = columns.begin; w < columns.end; w++)
            total += (double)plane[(h * pool->x.w + w) * pool->x.block];
    return (float)(total / (double)((rows.end - rows.begin) * (columns.end - columns.begin)));
}

static void spread(const struct pool *pool, float *plane, float gradient, struct bin rows,
                   struct bin columns)
{
    float part = gradient / (float)((rows.end - rows.begin) * (columns.end - columns.begin));
    for (int64_t h = rows.begin; h < rows.end; h++)
        for (int64_t w = columns.begin; w < columns.end; w++)
            plane[(h * pool->x.w + w) * pool->x.block] += part;
}

static void forward_plane(const void *context, int64_t p, const float *plane, float *out)
{
    (void)p;
    const struct pool *pool = context;
    const struct grid *x = &pool->x, *y = &pool->y;
    for (int64_t h = 0; h < y->h; h++)
        for (int64_t w = 0; w < y->w; w++)
            for (int64_t c = 0; c < y->block; c++)
                *out++ = average(pool, plane + c, bin_of(h, x->h, y->h), bin_of(w, x->w, y->w));
}

static void grad_plane(const void *context, int64_t p, const float *gy, float *plane)
{
    (void)p;
    const struct pool *pool = context;
    const struct grid *x = &pool->x, *y = &pool->y;
    memset(plane, 0, (size_t)(x->h * x->w * x->block) * sizeof(float));
    for (int64_t h = 0; h < y->h; h++)
        for (int64_t w = 0; w < y->w; w++)
            for (int64_t c = 0; c < y->block; c++)
                spread(pool, plane + c, *gy++, bin_of(h, x->h, y->h), bin_of(w, x->w, y->w));
}

static int forward_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pool pool;
    layout_grid(own->choice->in[0], &pool.x);
    layout_grid(own->choice->out[0], &pool.y);
    real_planes_run(own, args, forward_plane, &pool);
    return 0;
}

static int grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pool pool;
    layout_grid(own->choice->out[0], &pool.x);
    layout_grid(own->choice->in[0], &pool.y);
    real_planes_run(own, args, grad_plane, &pool);
    return 0;
}

const struct kernel kernel_adaptive_avg_pool2d = {"adaptive_avg_pool2d", own_query_resized,
                                                  own_create, forward_run, own_destroy};
const struct kernel kernel_adaptive_avg_pool2d_grad = {
    "adaptive_avg_pool2d_grad", own_query_resized, own_create, grad_run, own_destroy};
