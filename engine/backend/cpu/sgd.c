/* sgd.c: torch.optim.SGD's update of one parameter, in one pass over its memory. */
#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

struct update {
    float *w, *momentum_buffer; /* buffer NULL: no momentum */
    const float *grad;
    float lr, momentum, keep, weight_decay; /* keep: 1 - dampening */
    bool first, nesterov;
};

static void step_plain(int64_t begin, int64_t end, void *context)
{
    const struct update *u = context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        u->w[i] -= u->lr * (u->grad[i] + u->weight_decay * u->w[i]);
}

/* The first step's buffer is the gradient itself, without dampening. */
static void step_momentum(int64_t begin, int64_t end, void *context)
{
    const struct update *u = context;
    float keep = u->first ? 1 : u->keep, momentum = u->first ? 0 : u->momentum;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float grad = u->grad[i] + u->weight_decay * u->w[i];
        float buffer = momentum * u->momentum_buffer[i] + keep * grad;
        u->momentum_buffer[i] = buffer;
        u->w[i] -= u->lr * (u->nesterov ? grad + u->momentum * buffer : buffer);
    }
}

static int sgd_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct sgd_attr *attr = own->node->attr;
    struct update update = {
        .w = args->in[0],
        .grad = args->in[1],
        .momentum_buffer = own_in(own->node, 2) ? args->in[2] : NULL,
        .lr = (float)args->step->lr,
        .momentum = (float)attr->momentum,
        .keep = (float)(1 - attr->dampening),
        .weight_decay = (float)attr->weight_decay,
        .first = args->step->number == 1,
        .nesterov = attr->nesterov,
    };
    team_for(shape_count(&own->node->in[0]->shape), OWN_GRAIN,
             update.momentum_buffer ? step_momentum : step_plain, &update);
    return 0;
}

const struct kernel kernel_sgd = {"sgd", own_query_plain, own_create, sgd_run, own_destroy};
