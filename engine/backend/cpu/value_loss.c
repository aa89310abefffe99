/* value_loss.c: mse, l1 and bce_with_logits: torch.nn.MSELoss, L1Loss and BCEWithLogitsLoss with
 * their gradients, element by element.
 *
 * The loss is a sum in double, or one a sample, of parts of a fixed size, so that it does not
 * depend on the number of threads; the gradient comes along divided by the whole batch's divisor.
 */
#include <math.h>

#include "engine/backend/cpu/loss.h"
#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

/* Elements of one partial sum. */
enum { PART = 4096 };

struct value_loss {
    const struct bce_attr *attr; /* bce_with_logits */
    const float *output, *target;
    float *grad; /* or NULL */
    double *part;
    int64_t count, run_parts; /* elements of a sum; its parts */
    double divisor;
    /* Sums the losses of elements [from, to), writes their gradients where wanted. */
    double (*run)(const struct value_loss *loss, int64_t from, int64_t to);
};

static double mse_part(const struct value_loss *loss, int64_t from, int64_t to)
{
    double total = 0, factor = 2 / loss->divisor;
    for (int64_t i = from; i < to; i++) {
        double difference = (double)loss->output[i] - (double)loss->target[i];
        total += difference * difference;
        if (loss->grad)
            loss->grad[i] = (float)(factor * difference);
    }
    return total;
}

/* PyTorch's gradient of |0| is 0. */
static double l1_part(const struct value_loss *loss, int64_t from, int64_t to)
{
    double total = 0, factor = 1 / loss->divisor;
    for (int64_t i = from; i < to; i++) {
        double difference = (double)loss->output[i] - (double)loss->target[i];
        total += fabs(difference);
        if (loss->grad)
            loss->grad[i] = (float)(difference == 0 ? 0 : copysign(factor, difference));
    }
    return total;
}

/* (1 - y) x + (1 + (w - 1) y) log(1 + exp(-x)), in the form in which nothing overflows. */
static double bce_part(const struct value_loss *loss, int64_t from, int64_t to)
{
    const struct bce_attr *attr = loss->attr;
    double total = 0;
    for (int64_t i = from; i < to; i++) {
        double x = (double)loss->output[i], y = (double)loss->target[i];
        double weight = attr->n_pos_weight > 0 ? attr->pos_weight[i % attr->n_pos_weight] : 1;
        double positive = 1 + (weight - 1) * y, small = exp(-fabs(x));
        total += (1 - y) * x + positive * (log1p(small) + fmax(-x, 0));
        if (loss->grad) {
            double without = (x > 0 ? small : 1) / (1 + small); /* 1 - sigmoid(x) */
            loss->grad[i] = (float)((1 - y - positive * without) / loss->divisor);
        }
    }
    return total;
}

static void run_parts(int64_t begin, int64_t end, void *context)
{
    const struct value_loss *loss = context;
    for (int64_t p = begin; p < end; p++) {
        int64_t first = p / loss->run_parts * loss->count, from = p % loss->run_parts * PART;
        int64_t to = from + PART < loss->count ? from + PART : loss->count;
        loss->part[p] = loss->run(loss, first + from, first + to);
    }
}

/* Of one sum, and how many elements that has. */
static int64_t count_parts(const struct node *node, int64_t *ret_count)
{
    *ret_count = shape_count(&node->in[0]->shape) / node->out[0]->shape.dim[0];
    return (*ret_count + PART - 1) / PART;
}

static int value_loss_run(const struct own *own, const struct kernel_args *args,
                          double (*run)(const struct value_loss *loss, int64_t from, int64_t to))
{
    struct value_loss loss = {
        .attr = own->node->attr,
        .output = args->in[0],
        .target = args->in[1],
        .grad = own_out(own->node, 1) ? args->out[1] : NULL,
        .part = args->scratch,
        .divisor = args->step->loss_divisor,
        .run = run,
    };
    int64_t n_sums = own->node->out[0]->shape.dim[0];
    loss.run_parts = count_parts(own->node, &loss.count);
    team_for(n_sums * loss.run_parts, OWN_GRAIN / PART, run_parts, &loss);
    loss_sums(loss.part, n_sums * loss.run_parts, args->out[0], n_sums);
    return 0;
}

static int mse_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return value_loss_run(state, args, mse_part);
}

static int l1_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return value_loss_run(state, args, l1_part);
}

static int bce_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    return value_loss_run(state, args, bce_part);
}

static int value_loss_query(const struct node *node, const struct layout *const *in,
                            struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    int64_t count, n_parts = node->out[0]->shape.dim[0] * count_parts(node, &count);
    ret_choice->scratch_bytes = (size_t)n_parts * sizeof(double);
    return 0;
}

const struct kernel kernel_mse = {"mse", value_loss_query, own_create, mse_run, own_destroy};
const struct kernel kernel_l1 = {"l1", value_loss_query, own_create, l1_run, own_destroy};
const struct kernel kernel_bce_with_logits = {"bce_with_logits", value_loss_query, own_create,
                                              bce_run, own_destroy};
