/* loss.c: cross_entropy and mse: torch.nn.CrossEntropyLoss and MSELoss with their gradients.
 *
 * The loss is a sum in double, always added in the same order, so that it does not depend on the
 * number of threads; the gradient comes along divided by the whole batch's divisor, since the
 * softmax and the difference are at hand.
 */
#include <math.h>

#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"

/* Adds `n` partial sums in order. */
static double sum(const double *part, int64_t n)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++)
        total += part[i];
    return total;
}

struct cross_entropy {
    const float *logits;
    const int64_t *target;
    float *grad;  /* or NULL */
    double *part; /* a sample's loss */
    int64_t classes;
    double divisor;
};

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

static void cross_entropy_rows(int64_t begin, int64_t end, void *context)
{
    const struct cross_entropy *ce = context;
    for (int64_t i = begin; i < end; i++) {
        const float *row = ce->logits + i * ce->classes;
        int64_t target = ce->target[i];
        double lse = log_sum_exp(row, ce->classes);
        ce->part[i] = lse - (double)row[target];
        if (!ce->grad)
            continue;
        float *grad = ce->grad + i * ce->classes;
        for (int64_t c = 0; c < ce->classes; c++)
            grad[c] = (float)((exp((double)row[c] - lse) - (c == target)) / ce->divisor);
    }
}

static int cross_entropy_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct shape *shape = &own->node->in[0]->shape;
    int64_t n = shape->dim[0], classes = shape->dim[1];
    struct cross_entropy ce = {
        .logits = args->in[0],
        .target = args->in[1],
        .grad = own_out(own->node, 1) ? args->out[1] : NULL,
        .part = args->scratch,
        .classes = classes,
        .divisor = args->step->loss_divisor,
    };
    for (int64_t i = 0; i < n; i++) /* it indexes memory: not left to the loader alone */
        if (ce.target[i] < 0 || ce.target[i] >= classes)
            return err_set(
                err, ERR_DATA_INVALID,
                "sample %lld of the batch has the label %lld, and there are %lld classes",
                (long long)i, (long long)ce.target[i], (long long)classes);
    team_for(n, OWN_GRAIN / 16 / classes + 1, cross_entropy_rows, &ce);
    *(double *)args->out[0] = sum(ce.part, n);
    return 0;
}

static int cross_entropy_query(const struct node *node, const struct layout *const *in,
                               struct arena *arena, struct kernel_choice *ret_choice,
                               struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = (size_t)node->in[0]->shape.dim[0] * sizeof(double);
    return rc;
}

/* Elements of one partial sum. */
enum { PART = 4096 };

struct mse {
    const float *output, *target;
    float *grad; /* or NULL */
    double *part;
    int64_t count;
    double factor; /* 2 / divisor */
};

static void mse_parts(int64_t begin, int64_t end, void *context)
{
    const struct mse *mse = context;
    for (int64_t p = begin; p < end; p++) {
        int64_t from = p * PART, to = from + PART < mse->count ? from + PART : mse->count;
        double total = 0;
        for (int64_t i = from; i < to; i++) {
            double difference = (double)mse->output[i] - (double)mse->target[i];
            total += difference * difference;
            if (mse->grad)
                mse->grad[i] = (float)(mse->factor * difference);
        }
        mse->part[p] = total;
    }
}

static int64_t mse_n_parts(const struct node *node)
{
    return (shape_count(&node->in[0]->shape) + PART - 1) / PART;
}

static int mse_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct mse mse = {
        .output = args->in[0],
        .target = args->in[1],
        .grad = own_out(own->node, 1) ? args->out[1] : NULL,
        .part = args->scratch,
        .count = shape_count(&own->node->in[0]->shape),
        .factor = 2 / args->step->loss_divisor,
    };
    int64_t n_parts = mse_n_parts(own->node);
    team_for(n_parts, OWN_GRAIN / PART, mse_parts, &mse);
    *(double *)args->out[0] = sum(mse.part, n_parts);
    return 0;
}

static int mse_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                     struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = (size_t)mse_n_parts(node) * sizeof(double);
    return rc;
}

const struct kernel kernel_cross_entropy = {"cross_entropy", cross_entropy_query, own_create,
                                            cross_entropy_run, own_destroy};
const struct kernel kernel_mse = {"mse", mse_query, own_create, mse_run, own_destroy};
