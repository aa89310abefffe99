/* sgd.c: torch.optim.SGD's update of one parameter, in one pass over its memory. */
#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/update.h"
#include "engine/backend/cpu/vector.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

/* The spans below copy it: a weight that is stored might else change it. */
struct sgd {
    float *w, *momentum_buffer; /* buffer NULL: no momentum */
    const float *grad;
    float scale, lr, momentum, keep, weight_decay; /* keep: 1 - dampening */
    bool first, nesterov;
};

VECTOR_CLONES static void step_plain(int64_t begin, int64_t end, void *context)
{
    const struct sgd u = *(const struct sgd *)context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        u.w[i] -= u.lr * (u.scale * u.grad[i] + u.weight_decay * u.w[i]);
}

/* The first step's buffer is the gradient itself, without dampening. */
VECTOR_CLONES static void step_momentum(int64_t begin, int64_t end, void *context)
{
    const struct sgd u = *(const struct sgd *)context;
    float keep = u.first ? 1 : u.keep, momentum = u.first ? 0 : u.momentum;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float grad = u.scale * u.grad[i] + u.weight_decay * u.w[i];
        float buffer = momentum * u.momentum_buffer[i] + keep * grad;
        u.momentum_buffer[i] = buffer;
        u.w[i] -= u.lr * (u.nesterov ? grad + u.momentum * buffer : buffer);
    }
}

static int sgd_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct sgd_attr *attr = own->node->attr;
    struct sgd sgd = {
        .w = args->in[UPDATE_PARAMETER],
        .grad = args->in[UPDATE_GRADIENT],
        .scale = update_scale(own->node, args),
        .momentum_buffer = update_state(own->node, args, 0),
        .lr = (float)args->step->lr,
        .momentum = (float)attr->momentum,
        .keep = (float)(1 - attr->dampening),
        .weight_decay = (float)attr->weight_decay,
        .first = args->step->number == 1,
        .nesterov = attr->nesterov,
    };
    team_for(shape_count(&own->node->in[0]->shape), OWN_GRAIN,
             sgd.momentum_buffer ? step_momentum : step_plain, &sgd);
    return 0;
}

const struct kernel kernel_sgd = {"sgd", own_query_plain, own_create, sgd_run, own_destroy};
