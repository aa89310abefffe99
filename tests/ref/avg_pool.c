/* avg_pool.c: avg_pool2d. Every position of a window is visited; those outside of the input add
 * nothing, but those inside of the padding are counted where padding counts. */
#include <string.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

/* Calls visit(x, y, divisor) with the positions of each input and output that belong together. */
static void for_each_pair(const struct avg_pool2d_attr *a, const struct shape *x,
                          const struct shape *y,
                          void (*visit)(int64_t x, int64_t y, double divisor, double *const *data),
                          double *const *data)
{
    for (int64_t i = 0; i < shape_count(y); i++) {
        int64_t plane = i / (y->dim[2] * y->dim[3]), oh = i / y->dim[3] % y->dim[2];
        int64_t ow = i % y->dim[3], positions = 0, inside = 0, list[1024];
        for (int64_t kh = 0; kh < a->kernel_size[0]; kh++)
            for (int64_t kw = 0; kw < a->kernel_size[1]; kw++) {
                int64_t h = oh * a->stride[0] - a->padding[0] + kh;
                int64_t w = ow * a->stride[1] - a->padding[1] + kw;
                if (h >= x->dim[2] + a->padding[0] || w >= x->dim[3] + a->padding[1])
                    continue;
                positions++;
                if (h >= 0 && h < x->dim[2] && w >= 0 && w < x->dim[3])
                    list[inside++] = (plane * x->dim[2] + h) * x->dim[3] + w;
            }
        int64_t divisor = a->divisor_override    ? a->divisor_override
                          : a->count_include_pad ? positions
                                                 : inside;
        for (int64_t k = 0; k < inside; k++)
            visit(list[k], i, (double)divisor, data);
    }
}

static void add_to_output(int64_t x, int64_t y, double divisor, double *const *data)
{
    data[1][y] += data[0][x] / divisor;
}

static void add_to_input(int64_t x, int64_t y, double divisor, double *const *data)
{
    data[1][x] += data[0][y] / divisor;
}

void ref_avg_pool2d(const struct node *node, double *const *in, double *const *out,
                    const struct step *step)
{
    (void)step;
    memset(out[0], 0, (size_t)shape_count(&node->out[0]->shape) * sizeof(double));
    for_each_pair(node->attr, &node->in[0]->shape, &node->out[0]->shape, add_to_output,
                  (double *[]){in[0], out[0]});
}

void ref_avg_pool2d_grad(const struct node *node, double *const *in, double *const *out,
                         const struct step *step)
{
    (void)step;
    memset(out[0], 0, (size_t)shape_count(&node->out[0]->shape) * sizeof(double));
    for_each_pair(node->attr, &node->out[0]->shape, &node->in[0]->shape, add_to_input,
                  (double *[]){in[0], out[0]});
}
