/* max_pool2d.c: max_pool2d and its gradient: torch.nn.MaxPool2d.
 *
 * In any grid layout. The workspace holds for each output which pixel of its input plane
 * (row-major) was the largest: the first of equals, and NaN before any number, as in PyTorch. (A
 * position in the window would not fit: a window may be far larger than the plane, by its padding.)
 */
#include <math.h>
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/real.h"
#include "engine/ops/attr.h"

struct pool {
    const struct max_pool2d_attr *attr;
    struct grid x, y;
    int32_t *pixel; /* or NULL */
};

enum {
    LANES = 16,   /* neighbouring channels that are compared at once */
    NOWHERE = -1, /* the pixel of a window that dilation lets step over the whole plane */
};

struct best {
    float value[LANES];
    int32_t pixel[LANES];
};

VECTOR_INLINE void best_offer(struct best *best, const float *x, int64_t n, int32_t pixel)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        bool take = x[i] > best->value[i] || x[i] != x[i];
        best->value[i] = take ? x[i] : best->value[i];
        best->pixel[i] = take ? pixel : best->pixel[i];
    }
}

/* The first input row or column of window `o`, and which positions of the window lie inside. */
struct window {
    int64_t start, begin, end;
};

/* Nearly every window is dense: a division a window would cost as much as its maximum. */
static int64_t steps_over(int64_t pixels, int64_t dilation)
{
    return dilation == 1 ? pixels : (pixels + dilation - 1) / dilation;
}

static struct window window_of(const struct max_pool2d_attr *attr, int axis, int64_t o,
                               int64_t size)
{
    int64_t start = o * attr->stride[axis] - attr->padding[axis], d = attr->dilation[axis];
    int64_t begin = start < 0 ? steps_over(-start, d) : 0;
    int64_t end = start < size ? steps_over(size - start, d) : 0;
    return (struct window){start, begin,
                           end < attr->kernel_size[axis] ? end : attr->kernel_size[axis]};
}

/* Before any element is seen; padded channels, those from `real` on, stay zero. */
VECTOR_INLINE struct best best_init(int32_t pixel, int64_t real)
{
    struct best best;
    for (int i = 0; i < LANES; i++) {
        best.value[i] = i < real ? -INFINITY : 0;
        best.pixel[i] = pixel;
    }
    return best;
}

/* The best of one window for `n` channels from `plane` on, of which `real` are not padded. */
VECTOR_INLINE struct best window_best(const struct pool *pool, const float *plane,
                                      struct window rows, struct window columns, int64_t n,
                                      int64_t real)
{
    const int64_t *dilation = pool->attr->dilation;
    if (rows.begin >= rows.end || columns.begin >= columns.end)
        return best_init(NOWHERE, real);
    int64_t corner = (rows.start + rows.begin * dilation[0]) * pool->x.w + columns.start +
                     columns.begin * dilation[1];
    struct best best = best_init((int32_t)corner, real);
    for (int64_t kh = rows.begin; kh < rows.end; kh++) {
        int64_t row = (rows.start + kh * dilation[0]) * pool->x.w;
        for (int64_t kw = columns.begin; kw < columns.end; kw++) {
            int64_t pixel = row + columns.start + kw * dilation[1];
            const float *x = plane + pixel * pool->x.block;
            if (n == LANES) /* of a constant length, so that it becomes vector code */
                best_offer(&best, x, LANES, (int32_t)pixel);
            else
                best_offer(&best, x, n, (int32_t)pixel);
        }
    }
    return best;
}

/* One row of the output's plane. */
VECTOR_CLONES static void pool_row(const struct pool *pool, const float *plane, struct window rows,
                                   int64_t real, float *out, int32_t *pixel)
{
    int64_t block = pool->x.block;
    for (int64_t ow = 0; ow < pool->y.w; ow++) {
        struct window columns = window_of(pool->attr, 1, ow, pool->x.w);
        for (int64_t c = 0; c < block; c += LANES) {
            int64_t n = block - c < LANES ? block - c : LANES;
            struct best best = window_best(pool, plane + c, rows, columns, n, real - c);
            memcpy(out + ow * block + c, best.value, (size_t)n * sizeof(float));
            if (pixel)
                memcpy(pixel + ow * block + c, best.pixel, (size_t)n * sizeof(int32_t));
        }
    }
}

static void pool_plane(const void *context, int64_t p, const float *plane, float *out)
{
    const struct pool *pool = context;
    int64_t row = pool->y.w * pool->y.block;
    int64_t real = pool->x.channels - p % pool->x.blocks * pool->x.block;
    for (int64_t oh = 0; oh < pool->y.h; oh++) {
        struct window rows = window_of(pool->attr, 0, oh, pool->x.h);
        int32_t *pixel = pool->pixel ? pool->pixel + (p * pool->y.h + oh) * row : NULL;
        pool_row(pool, plane, rows, real, out + oh * row, pixel);
    }
}

static int max_pool2d_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pool pool = {
        .attr = own->node->attr,
        .pixel = own_out(own->node, 1) ? args->out[1] : NULL,
    };
    layout_grid(own->choice->in[0], &pool.x);
    layout_grid(own->choice->out[0], &pool.y);
    real_planes_run(own, args, pool_plane, &pool);
    return 0;
}

static int max_pool2d_query(const struct node *node, const struct layout *const *in,
                            struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    struct kernel_choice choice;
    const int64_t *size = node->in[0]->shape.dim + 2;
    if (size[0] * size[1] > INT32_MAX)
        return err_set(err, ERR_DEVICE_FAILED,
                       "a plane of %lld x %lld is more than the 2^31 pixels that it can tell apart",
                       (long long)size[0], (long long)size[1]);
    int rc = own_query_plain(node, in, arena, &choice, err);
    if (rc)
        return rc;
    int64_t block = in[0]->block ? in[0]->block : 1;
    if (in[0]->block)
        choice.in[0] = in[0];
    choice.out[0] = layout_blocked(arena, &node->out[0]->shape, node->out[0]->dtype, block);
    if (own_out(node, 1))
        choice.out[1] = layout_private(arena, &node->out[0]->shape, block, sizeof(int32_t));
    if (!choice.out[0] || (own_out(node, 1) && !choice.out[1]))
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    choice.scratch_bytes = real_planes_scratch(&choice);
    *ret_choice = choice;
    return 0;
}

struct pool_grad {
    struct grid x, y;
    const int32_t *pixel;
};

static void grad_plane(const void *context, int64_t plane, const float *gy, float *gx)
{
    const struct pool_grad *pool = context;
    int64_t block = pool->x.block, n = pool->y.h * pool->y.w;
    const int32_t *pixel = pool->pixel + plane * n * block;
    memset(gx, 0, (size_t)(pool->x.h * pool->x.w * block) * sizeof(float));
    for (int64_t i = 0; i < n; i++, pixel += block, gy += block)
        for (int64_t c = 0; c < block; c++)
            if (pixel[c] != NOWHERE)
                gx[pixel[c] * block + c] += gy[c];
}

static int max_pool2d_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct pool_grad pool = {.pixel = args->in[1]};
    layout_grid(own->choice->in[0], &pool.y);
    layout_grid(own->choice->out[0], &pool.x);
    real_planes_run(own, args, grad_plane, &pool);
    return 0;
}

/* As the forward lay, which the workspace tells. */
static int max_pool2d_grad_query(const struct node *node, const struct layout *const *in,
                                 struct arena *arena, struct kernel_choice *ret_choice,
                                 struct err *err)
{
    struct kernel_choice choice;
    int rc = own_query_plain(node, in, arena, &choice, err);
    if (rc)
        return rc;
    choice.in[0] = layout_blocked(arena, &node->in[0]->shape, node->in[0]->dtype, in[1]->block);
    choice.in[1] = in[1];
    choice.out[0] = layout_blocked(arena, &node->out[0]->shape, node->out[0]->dtype, in[1]->block);
    if (!choice.in[0] || !choice.out[0])
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    choice.scratch_bytes = real_planes_scratch(&choice);
    *ret_choice = choice;
    return 0;
}

const struct kernel kernel_max_pool2d = {"max_pool2d", max_pool2d_query, own_create, max_pool2d_run,
                                         own_destroy};
const struct kernel kernel_max_pool2d_grad = {"max_pool2d_grad", max_pool2d_grad_query, own_create,
                                              max_pool2d_grad_run, own_destroy};
