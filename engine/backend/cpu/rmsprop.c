/* rmsprop.c: torch.optim.RMSprop's update of one parameter, in one pass over its memory and in
 * PyTorch's order of operations. */
#include <math.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/update.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

struct rmsprop {
    float *w, *square_avg, *momentum_buffer, *grad_avg; /* the last two: NULL where not asked for */
    const float *grad;
    float scale, lr, alpha, rest, eps, momentum, weight_decay; /* rest: 1 - alpha */
};

/* What the gradient is divided by. */
static float rmsprop_average(const struct rmsprop *r, int64_t i, float grad)
{
    float square = r->square_avg[i] = r->alpha * r->square_avg[i] + r->rest * grad * grad;
    if (r->grad_avg) {
        float mean = r->grad_avg[i] = r->alpha * r->grad_avg[i] + r->rest * grad;
        square -= mean * mean;
    }
    return sqrtf(square) + r->eps;
}

static void rmsprop_span(int64_t begin, int64_t end, void *context)
{
    const struct rmsprop *r = context;
    for (int64_t i = begin; i < end; i++) {
        float grad = r->scale * r->grad[i] + r->weight_decay * r->w[i];
        float average = rmsprop_average(r, i, grad);
        if (r->momentum_buffer) {
            r->momentum_buffer[i] = r->momentum * r->momentum_buffer[i] + grad / average;
            r->w[i] -= r->lr * r->momentum_buffer[i];
        } else {
            r->w[i] -= r->lr * grad / average;
        }
    }
}

static int rmsprop_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct rmsprop_attr *attr = own->node->attr;
    struct rmsprop rmsprop = {
        .w = args->in[UPDATE_PARAMETER],
        .grad = args->in[UPDATE_GRADIENT],
        .scale = update_scale(own->node, args),
        .square_avg = args->in[UPDATE_STATE],
        .momentum_buffer = update_state(own->node, args, 1),
        .grad_avg = update_state(own->node, args, 2),
        .lr = (float)args->step->lr,
        .alpha = (float)attr->alpha,
        .rest = (float)(1 - attr->alpha),
        .eps = (float)attr->eps,
        .momentum = (float)attr->momentum,
        .weight_decay = (float)attr->weight_decay,
    };
    team_for(shape_count(&own->node->in[0]->shape), OWN_GRAIN / 2, rmsprop_span, &rmsprop);
    return 0;
}

const struct kernel kernel_rmsprop = {"rmsprop", own_query_plain, own_create, rmsprop_run,
                                      own_destroy};
