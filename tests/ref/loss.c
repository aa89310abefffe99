/* loss.c: cross_entropy, nll, mse, l1, bce_with_logits, argmax. */
#include <math.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

static int64_t last_dim(const struct node *node)
{
    const struct shape *shape = &node->in[0]->shape;
    return shape->dim[shape->rank - 1];
}

static int64_t n_rows(const struct node *node)
{
    return shape_count(&node->in[0]->shape) / last_dim(node);
}

/* The sum that term i of n belongs to: the batch's, or its sample's. */
static double *sum_of(const struct node *node, double *const *out, int64_t i, int64_t n)
{
    return &out[0][i / (n / node->out[0]->shape.dim[0])];
}

static void clear_sums(const struct node *node, double *const *out)
{
    for (int64_t i = 0; i < node->out[0]->shape.dim[0]; i++)
        out[0][i] = 0;
}

static double class_weight(const struct class_loss_attr *attr, int64_t c)
{
    return attr->weight ? attr->weight[c] : 1;
}

static double log_sum_exp(const double *row, int64_t classes)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; k++)
        largest = fmax(largest, row[k]);
    for (int64_t k = 0; k < classes; k++)
        sum += exp(row[k] - largest);
    return largest + log(sum);
}

/* The documentation's loss for a target of probabilities: class c is the target to the share q,
 * and counts w; its loss is -w q log p_c, whose gradient by logit k is w q (p_k - [k = c]). */
static double cross_entropy_of(const double *row, int64_t classes, int64_t c, double wq,
                               double *grad, double divisor)
{
    double lse = log_sum_exp(row, classes);
    for (int64_t k = 0; grad && k < classes; k++)
        grad[k] += wq * (exp(row[k] - lse) - (k == c)) / divisor;
    return wq * (lse - row[c]);
}

void ref_cross_entropy(const struct node *node, double *const *in, double *const *out,
                       const struct step *step)
{
    const struct class_loss_attr *attr = node->attr;
    int64_t classes = last_dim(node);
    clear_sums(node, out);
    for (int64_t n = 0; n < n_rows(node); n++) {
        double *grad = out[1] ? out[1] + n * classes : NULL;
        int64_t target = (int64_t)in[1][n];
        for (int64_t c = 0; grad && c < classes; c++)
            grad[c] = 0;
        for (int64_t c = 0; target != attr->ignore_index && c < classes; c++) {
            double share = attr->label_smoothing / (double)classes +
                           (c == target ? 1 - attr->label_smoothing : 0);
            if (share > 0)
                *sum_of(node, out, n, n_rows(node)) +=
                    cross_entropy_of(in[0] + n * classes, classes, c, class_weight(attr, c) * share,
                                     grad, step->loss_divisor);
        }
    }
}

void ref_nll(const struct node *node, double *const *in, double *const *out,
             const struct step *step)
{
    const struct class_loss_attr *attr = node->attr;
    int64_t classes = last_dim(node);
    clear_sums(node, out);
    for (int64_t n = 0; n < n_rows(node); n++)
        for (int64_t c = 0; c < classes; c++) {
            bool counts = (int64_t)in[1][n] == c && c != attr->ignore_index;
            double weight = counts ? class_weight(attr, c) : 0;
            *sum_of(node, out, n, n_rows(node)) -= weight * in[0][n * classes + c];
            if (out[1])
                out[1][n * classes + c] = -weight / step->loss_divisor;
        }
}

void ref_mse(const struct node *node, double *const *in, double *const *out,
             const struct step *step)
{
    clear_sums(node, out);
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        *sum_of(node, out, i, shape_count(&node->in[0]->shape)) += pow(in[0][i] - in[1][i], 2);
        if (out[1])
            out[1][i] = 2 * (in[0][i] - in[1][i]) / step->loss_divisor;
    }
}

void ref_l1(const struct node *node, double *const *in, double *const *out, const struct step *step)
{
    clear_sums(node, out);
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        *sum_of(node, out, i, shape_count(&node->in[0]->shape)) += fabs(in[0][i] - in[1][i]);
        if (out[1])
            out[1][i] = ((in[0][i] > in[1][i]) - (in[0][i] < in[1][i])) / step->loss_divisor;
    }
}

/* log(sigmoid(x)), of which 1 - sigmoid(x) is the mirror image. */
static double log_sigmoid(double x)
{
    return fmin(x, 0) - log1p(exp(-fabs(x)));
}

void ref_bce_with_logits(const struct node *node, double *const *in, double *const *out,
                         const struct step *step)
{
    const struct bce_attr *attr = node->attr;
    clear_sums(node, out);
    for (int64_t i = 0; i < shape_count(&node->in[0]->shape); i++) {
        double x = in[0][i], y = in[1][i], p = exp(log_sigmoid(x));
        double weight = attr->n_pos_weight > 0 ? attr->pos_weight[i % attr->n_pos_weight] : 1;
        *sum_of(node, out, i, shape_count(&node->in[0]->shape)) -=
            weight * y * log_sigmoid(x) + (1 - y) * log_sigmoid(-x);
        if (out[1])
            out[1][i] = (-weight * y * (1 - p) + (1 - y) * p) / step->loss_divisor;
    }
}

void ref_argmax(const struct node *node, double *const *in, double *const *out,
                const struct step *step)
{
    (void)step;
    int64_t classes = last_dim(node);
    for (int64_t n = 0; n < n_rows(node); n++) {
        const double *row = in[0] + n * classes;
        int64_t best = 0;
        for (int64_t c = classes - 1; c >= 0; c--) /* backwards: the first of equals stays */
            if (isnan(row[c]) || (!isnan(row[best]) && row[c] >= row[best]))
                best = c;
        out[0][n] = (double)best;
    }
}
