/* batch_norm_synchronized.c: the parts of a BatchNorm over several replicas, a channel at a time.
 * A test has one replica: what it gathers and sums is its own. */
#include <math.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

/* [N, C, H, W] or [N, C]: a channel has n * pixels values. */
struct view {
    int64_t c, pixels, count;
};

static struct view view_of(const struct shape *shape)
{
    struct view view = {shape->dim[1], 1, 0};
    for (int i = 2; i < shape->rank; i++)
        view.pixels *= shape->dim[i];
    view.count = shape->dim[0] * view.pixels;
    return view;
}

/* The j-th of a channel's values. */
static int64_t position(const struct view *view, int64_t c, int64_t j)
{
    return (j / view->pixels * view->c + c) * view->pixels + j % view->pixels;
}

void ref_batch_norm_statistics(const struct node *node, double *const *in, double *const *out,
                               const struct step *step)
{
    (void)step;
    struct view view = view_of(&node->in[0]->shape);
    out[0][0] = (double)view.count;
    for (int64_t c = 0; c < view.c; c++) {
        double mean = 0, squares = 0;
        for (int64_t j = 0; j < view.count; j++)
            mean += in[0][position(&view, c, j)] / (double)view.count;
        for (int64_t j = 0; j < view.count; j++)
            squares += pow(in[0][position(&view, c, j)] - mean, 2);
        out[0][1 + c] = mean;
        out[0][1 + view.c + c] = squares;
    }
}

/* As if each replica's values were `count` ones at mean ± sqrt(squares / count). */
void ref_batch_norm_combine(const struct node *node, double *const *in, double *const *out,
                            const struct step *step)
{
    (void)step;
    const struct batch_norm_attr *attr = node->attr;
    int64_t replicas = node->in[0]->shape.dim[0], size = node->in[0]->shape.dim[1];
    int64_t channels = (size - 1) / 2;
    double count = 0;
    for (int64_t r = 0; r < replicas; r++)
        count += in[0][r * size];
    out[2][0] = count;
    for (int64_t c = 0; c < channels; c++) {
        double first = 0, second = 0; /* moments about zero */
        for (int64_t r = 0; r < replicas; r++) {
            const double *row = in[0] + r * size;
            first += row[0] * row[1 + c];
            second += row[1 + channels + c] + row[0] * row[1 + c] * row[1 + c];
        }
        double mean = first / count, squares = second - count * mean * mean;
        out[0][c] = mean;
        out[1][c] = squares / count;
        if (!in[1])
            continue;
        in[1][c] += attr->momentum * (mean - in[1][c]);
        in[2][c] += attr->momentum * (squares / (count - 1) - in[2][c]);
    }
    if (in[3])
        in[3][0] += 1;
}

void ref_batch_norm_sums(const struct node *node, double *const *in, double *const *out,
                         const struct step *step)
{
    (void)step;
    const struct batch_norm_attr *attr = node->attr;
    struct view view = view_of(&node->in[0]->shape);
    for (int64_t c = 0; c < view.c; c++) {
        double sum = 0, dot = 0;
        for (int64_t j = 0; j < view.count; j++) {
            int64_t i = position(&view, c, j);
            sum += in[1][i];
            dot += in[1][i] * (in[0][i] - in[2][c]) / sqrt(in[3][c] + attr->eps);
        }
        out[0][c] = sum;
        out[0][view.c + c] = dot;
        if (out[1])
            out[1][c] = dot;
        if (out[2])
            out[2][c] = sum;
    }
}

void ref_batch_norm_sums_grad(const struct node *node, double *const *in, double *const *out,
                              const struct step *step)
{
    (void)step;
    const struct batch_norm_attr *attr = node->attr;
    struct view view = view_of(&node->in[0]->shape);
    for (int64_t c = 0; c < view.c; c++) {
        double inverse = 1 / sqrt(in[4][c] + attr->eps);
        double sum = in[5][c] / in[6][0], dot = in[5][view.c + c] / in[6][0];
        for (int64_t j = 0; j < view.count; j++) {
            int64_t i = position(&view, c, j);
            out[0][i] = (in[2] ? in[2][c] : 1) * inverse *
                        (in[1][i] - sum - (in[0][i] - in[3][c]) * inverse * dot);
        }
    }
}

static void copy(const struct node *node, double *const *in, double *const *out)
{
    for (int64_t i = 0; i < shape_count(&node->out[0]->shape); i++)
        out[0][i] = in[0] ? in[0][i] : 0;
}

void ref_gather_replicas(const struct node *node, double *const *in, double *const *out,
                         const struct step *step)
{
    (void)step;
    copy(node, in, out);
}

void ref_sum_replicas(const struct node *node, double *const *in, double *const *out,
                      const struct step *step)
{
    (void)step;
    copy(node, in, out);
}
