/* adam.c: torch.optim.Adam's and AdamW's update of one parameter, in one pass over its memory and
 * in PyTorch's order of operations. */
#include <math.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/update.h"
#include "engine/backend/cpu/vector.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

struct adam {
    float *w, *exp_avg, *exp_avg_sq, *max_exp_avg_sq; /* the last NULL: no amsgrad */
    const float *grad;
    float scale, beta1, beta2, rest1, rest2; /* rest: 1 - beta */
    float keep;                              /* of w, by decoupled weight decay */
    float weight_decay;                      /* added to the gradient, where it is not decoupled */
    float step_size, correction, eps;        /* correction: sqrt(1 - beta2^step) */
};

/* Moves both averages; *ret_average is the first, the result the second. */
VECTOR_INLINE float move_averages(const struct adam *a, int64_t i, float *ret_average)
{
    float grad = a->scale * a->grad[i] + a->weight_decay * a->w[i];
    *ret_average = a->exp_avg[i] = a->beta1 * a->exp_avg[i] + a->rest1 * grad;
    return a->exp_avg_sq[i] = a->beta2 * a->exp_avg_sq[i] + a->rest2 * grad * grad;
}

VECTOR_INLINE void move_weight(const struct adam *a, int64_t i, float average, float square)
{
    float denominator = sqrtf(square) / a->correction + a->eps;
    a->w[i] = a->keep * a->w[i] - a->step_size * average / denominator;
}

VECTOR_CLONES static void adam_span(int64_t begin, int64_t end, void *context)
{
    const struct adam a = *(const struct adam *)context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float average, square = move_averages(&a, i, &average);
        move_weight(&a, i, average, square);
    }
}

/* The largest square so far, as torch.maximum: a NaN stays. */
VECTOR_CLONES static void amsgrad_span(int64_t begin, int64_t end, void *context)
{
    const struct adam a = *(const struct adam *)context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float average, square = move_averages(&a, i, &average);
        float largest = a.max_exp_avg_sq[i];
        a.max_exp_avg_sq[i] = square <= largest ? largest : square;
        move_weight(&a, i, average, a.max_exp_avg_sq[i]);
    }
}

static int adam_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct adam_attr *attr = own->node->attr;
    double lr = args->step->lr, number = (double)args->step->number;
    struct adam adam = {
        .w = args->in[UPDATE_PARAMETER],
        .grad = args->in[UPDATE_GRADIENT],
        .scale = update_scale(own->node, args),
        .exp_avg = args->in[UPDATE_STATE],
        .exp_avg_sq = args->in[UPDATE_STATE + 1],
        .max_exp_avg_sq = update_state(own->node, args, 2),
        .beta1 = (float)attr->beta1,
        .beta2 = (float)attr->beta2,
        .rest1 = (float)(1 - attr->beta1),
        .rest2 = (float)(1 - attr->beta2),
        .keep = attr->decoupled ? (float)(1 - lr * attr->weight_decay) : 1,
        .weight_decay = attr->decoupled ? 0 : (float)attr->weight_decay,
        .step_size = (float)(lr / (1 - pow(attr->beta1, number))),
        .correction = (float)sqrt(1 - pow(attr->beta2, number)),
        .eps = (float)attr->eps,
    };
    team_for(shape_count(&own->node->in[0]->shape), OWN_GRAIN / 2,
             adam.max_exp_avg_sq ? amsgrad_span : adam_span, &adam);
    return 0;
}

const struct kernel kernel_adam = {"adam", own_query_plain, own_create, adam_run, own_destroy};
