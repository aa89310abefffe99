/* conv2d.c: y[n,o,h,w] = b[o] + sum over (i, kh, kw) of w[o,i,kh,kw] * x[n, first(o) + i, …]; the
 * gradients visit the same products. */
#include <string.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

struct product {
    int64_t x, w, y; /* positions of the three factors */
};

/* Calls visit(product, context) for every product of the definition. */
static void for_each_product(const struct conv2d_attr *a, const struct shape *x,
                             const struct shape *w, const struct shape *y,
                             void (*visit)(struct product product, void *context), void *context)
{
    int64_t out_group = w->dim[0] / a->groups;
    for (int64_t n = 0; n < y->dim[0]; n++)
        for (int64_t o = 0; o < y->dim[1]; o++)
            for (int64_t oh = 0; oh < y->dim[2]; oh++)
                for (int64_t ow = 0; ow < y->dim[3]; ow++)
                    for (int64_t i = 0; i < w->dim[1]; i++)
                        for (int64_t kh = 0; kh < w->dim[2]; kh++)
                            for (int64_t kw = 0; kw < w->dim[3]; kw++) {
                                int64_t c = o / out_group * w->dim[1] + i;
                                int64_t h = oh * a->stride[0] - a->padding[0] + kh * a->dilation[0];
                                int64_t v = ow * a->stride[1] - a->padding[1] + kw * a->dilation[1];
                                if (h < 0 || h >= x->dim[2] || v < 0 || v >= x->dim[3])
                                    continue;
                                visit((struct product){ref_at(x, n, c, h, v),
                                                       ref_at(w, o, i, kh, kw),
                                                       ref_at(y, n, o, oh, ow)},
                                      context);
                            }
}

struct tensors {
    double *x, *w, *y;
};

static void add_to_y(struct product p, void *context)
{
    struct tensors *t = context;
    t->y[p.y] += t->x[p.x] * t->w[p.w];
}

static void add_to_x(struct product p, void *context)
{
    struct tensors *t = context;
    t->x[p.x] += t->y[p.y] * t->w[p.w];
}

static void add_to_w(struct product p, void *context)
{
    struct tensors *t = context;
    t->w[p.w] += t->x[p.x] * t->y[p.y];
}

static void clear(double *data, const struct shape *shape)
{
    memset(data, 0, (size_t)shape_count(shape) * sizeof *data);
}

void ref_conv2d(const struct node *node, double *const *in, double *const *out,
                const struct step *step)
{
    (void)step;
    const struct shape *y = &node->out[0]->shape;
    struct tensors t = {in[0], in[1], out[0]};
    clear(out[0], y);
    for_each_product(node->attr, &node->in[0]->shape, &node->in[1]->shape, y, add_to_y, &t);
    int64_t plane = y->dim[2] * y->dim[3];
    for (int64_t i = 0; in[2] && i < shape_count(y); i++)
        out[0][i] += in[2][i / plane % y->dim[1]];
}

void ref_conv2d_input_grad(const struct node *node, double *const *in, double *const *out,
                           const struct step *step)
{
    (void)step;
    struct tensors t = {out[0], in[1], in[0]};
    clear(out[0], &node->out[0]->shape);
    for_each_product(node->attr, &node->out[0]->shape, &node->in[1]->shape, &node->in[0]->shape,
                     add_to_x, &t);
}

void ref_conv2d_weight_grad(const struct node *node, double *const *in, double *const *out,
                            const struct step *step)
{
    (void)step;
    const struct shape *y = &node->in[1]->shape;
    struct tensors t = {in[0], out[0], in[1]};
    clear(out[0], &node->out[0]->shape);
    for_each_product(node->attr, &node->in[0]->shape, &node->out[0]->shape, y, add_to_w, &t);
    if (!out[1])
        return;
    clear(out[1], &node->out[1]->shape);
    for (int64_t i = 0; i < shape_count(y); i++)
        out[1][i / (y->dim[2] * y->dim[3]) % y->dim[1]] += in[1][i];
}
