/* class_loss.c: cross_entropy and nll: torch.nn.CrossEntropyLoss and NLLLoss with their gradients.
 *
 * A row of the output is a target's classes. The loss is a sum in double, or one a sample, always
 * added in the same order, so that it does not depend on the number of threads; the gradient comes
 * along divided by the whole batch's divisor, since the softmax is at hand.
 */
#include <math.h>
#include <string.h>

#include "engine/backend/cpu/loss.h"
#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

struct class_loss {
    const struct class_loss_attr *attr;
    const float *output;
    const int64_t *target;
    float *grad;  /* or NULL */
    double *part; /* a target's loss */
    int64_t classes;
    double total_weight; /* of all classes */
    double divisor;
};

static double weight_of(const struct class_loss *loss, int64_t c)
{
    return loss->attr->weight ? loss->attr->weight[c] : 1;
}

/* log(sum(exp(row))); a NaN among the logits makes it NaN. */
static double log_sum_exp(const float *row, int64_t n)
{
    float largest = row[0];
    for (int64_t c = 1; c < n; c++)
        largest = row[c] > largest ? row[c] : largest;
    double total = 0;
    for (int64_t c = 0; c < n; c++)
        total += exp((double)row[c] - (double)largest);
    return (double)largest + log(total);
}

/* The smoothed part: every class is the target, each with its weight. */
static double smooth_loss(const struct class_loss *loss, const float *row, double lse)
{
    double total = loss->total_weight * lse;
    for (int64_t c = 0; c < loss->classes; c++)
        total -= weight_of(loss, c) * (double)row[c];
    return total;
}

static void cross_entropy_row(const struct class_loss *loss, int64_t i)
{
    const float *row = loss->output + i * loss->classes;
    int64_t target = loss->target[i];
    double lse = log_sum_exp(row, loss->classes);
    double sharp = (1 - loss->attr->label_smoothing) * weight_of(loss, target);
    double spread = loss->attr->label_smoothing / (double)loss->classes;
    loss->part[i] = sharp * (lse - (double)row[target]);
    if (spread > 0)
        loss->part[i] += spread * smooth_loss(loss, row, lse);
    if (!loss->grad)
        return;
    float *grad = loss->grad + i * loss->classes;
    double whole = sharp + spread * loss->total_weight;
    for (int64_t c = 0; c < loss->classes; c++) {
        double wanted = (c == target ? sharp : 0) + spread * weight_of(loss, c);
        grad[c] = (float)((whole * exp((double)row[c] - lse) - wanted) / loss->divisor);
    }
}

static void nll_row(const struct class_loss *loss, int64_t i)
{
    int64_t target = loss->target[i], at = i * loss->classes + target;
    loss->part[i] = -weight_of(loss, target) * (double)loss->output[at];
    if (!loss->grad)
        return;
    memset(loss->grad + i * loss->classes, 0, (size_t)loss->classes * sizeof *loss->grad);
    loss->grad[at] = (float)(-weight_of(loss, target) / loss->divisor);
}

/* A target that does not count. */
static void ignored_row(const struct class_loss *loss, int64_t i)
{
    loss->part[i] = 0;
    if (loss->grad)
        memset(loss->grad + i * loss->classes, 0, (size_t)loss->classes * sizeof *loss->grad);
}

static void cross_entropy_rows(int64_t begin, int64_t end, void *context)
{
    const struct class_loss *loss = context;
    for (int64_t i = begin; i < end; i++)
        if (loss->target[i] == loss->attr->ignore_index)
            ignored_row(loss, i);
        else
            cross_entropy_row(loss, i);
}

static void nll_rows(int64_t begin, int64_t end, void *context)
{
    const struct class_loss *loss = context;
    for (int64_t i = begin; i < end; i++)
        if (loss->target[i] == loss->attr->ignore_index)
            ignored_row(loss, i);
        else
            nll_row(loss, i);
}

/* Targets index memory: not left to the loader alone. */
static int check_targets(const struct class_loss *loss, int64_t n, int64_t samples, struct err *err)
{
    for (int64_t i = 0; i < n; i++)
        if ((loss->target[i] < 0 || loss->target[i] >= loss->classes) &&
            loss->target[i] != loss->attr->ignore_index)
            return err_set(
                err, ERR_DATA_INVALID,
                "sample %lld of the batch has the label %lld, and there are %lld classes",
                (long long)(i / (n / samples)), (long long)loss->target[i],
                (long long)loss->classes);
    return 0;
}

static int64_t count_targets(const struct node *node)
{
    return shape_count(&node->in[1]->shape);
}

static int class_loss_run(const struct own *own, const struct kernel_args *args,
                          void (*rows)(int64_t begin, int64_t end, void *context), struct err *err)
{
    const struct shape *shape = &own->node->in[0]->shape;
    int64_t n = count_targets(own->node);
    struct class_loss loss = {
        .attr = own->node->attr,
        .output = args->in[0],
        .target = args->in[1],
        .grad = own_out(own->node, 1) ? args->out[1] : NULL,
        .part = args->scratch,
        .classes = shape->dim[shape->rank - 1],
        .divisor = args->step->loss_divisor,
    };
    int rc = check_targets(&loss, n, shape->dim[0], err);
    if (rc)
        return rc;
    for (int64_t c = 0; c < loss.classes; c++)
        loss.total_weight += weight_of(&loss, c);
    team_for(n, OWN_GRAIN / 16 / loss.classes + 1, rows, &loss);
    loss_sums(loss.part, n, args->out[0], own->node->out[0]->shape.dim[0]);
    return 0;
}

static int cross_entropy_run(void *state, const struct kernel_args *args, struct err *err)
{
    return class_loss_run(state, args, cross_entropy_rows, err);
}

static int nll_run(void *state, const struct kernel_args *args, struct err *err)
{
    return class_loss_run(state, args, nll_rows, err);
}

static int class_loss_query(const struct node *node, const struct layout *const *in,
                            struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = (size_t)count_targets(node) * sizeof(double);
    return rc;
}

const struct kernel kernel_cross_entropy = {"cross_entropy", class_loss_query, own_create,
                                            cross_entropy_run, own_destroy};
const struct kernel kernel_nll = {"nll", class_loss_query, own_create, nll_run, own_destroy};
