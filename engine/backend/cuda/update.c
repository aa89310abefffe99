/* update.c: sgd, adam, rmsprop: torch.optim's updates of one parameter: w, gw, scale? (of the
 * gradient), state... */
#include "engine/backend/cuda/update.h"
#include "engine/backend/cuda/own.h"
#include "engine/ops/attr.h"

enum { PARAMETER, GRADIENT, SCALE, STATE };

/* The input, or NULL where it is absent. */
static float *given(const struct own *own, const struct kernel_args *args, int i)
{
    return own_in(own->node, i) ? args->in[i] : NULL;
}

static int64_t count_of(const struct own *own)
{
    return shape_count(&own->node->in[PARAMETER]->shape);
}

static int sgd_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct sgd_attr *attr = own->node->attr;
    const struct sgd_launch sgd = {
        .w = args->in[PARAMETER],
        .grad = args->in[GRADIENT],
        .scale = given(own, args, SCALE),
        .momentum_buffer = given(own, args, STATE),
        .momentum = (float)attr->momentum,
        .keep = (float)(1 - attr->dampening),
        .weight_decay = (float)attr->weight_decay,
        .nesterov = attr->nesterov,
        .n = count_of(own),
    };
    return own_launched(launch_sgd(&sgd, own->device->step, own->device->compute), err);
}

static int adam_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct adam_attr *attr = own->node->attr;
    const struct adam_launch adam = {
        .w = args->in[PARAMETER],
        .grad = args->in[GRADIENT],
        .scale = given(own, args, SCALE),
        .exp_avg = args->in[STATE],
        .exp_avg_sq = args->in[STATE + 1],
        .max_exp_avg_sq = given(own, args, STATE + 2),
        .beta1 = attr->beta1,
        .beta2 = attr->beta2,
        .eps = attr->eps,
        .weight_decay = attr->weight_decay,
        .decoupled = attr->decoupled,
        .n = count_of(own),
    };
    return own_launched(launch_adam(&adam, own->device->step, own->device->compute), err);
}

static int rmsprop_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct rmsprop_attr *attr = own->node->attr;
    const struct rmsprop_launch rmsprop = {
        .w = args->in[PARAMETER],
        .grad = args->in[GRADIENT],
        .scale = given(own, args, SCALE),
        .square_avg = args->in[STATE],
        .momentum_buffer = given(own, args, STATE + 1),
        .grad_avg = given(own, args, STATE + 2),
        .alpha = (float)attr->alpha,
        .rest = (float)(1 - attr->alpha),
        .eps = (float)attr->eps,
        .momentum = (float)attr->momentum,
        .weight_decay = (float)attr->weight_decay,
        .n = count_of(own),
    };
    return own_launched(launch_rmsprop(&rmsprop, own->device->step, own->device->compute), err);
}

const struct kernel kernel_sgd = {"sgd", own_query_plain, own_create, sgd_run, own_destroy};
const struct kernel kernel_adam = {"adam", own_query_plain, own_create, adam_run, own_destroy};
const struct kernel kernel_rmsprop = {"rmsprop", own_query_plain, own_create, rmsprop_run,
                                      own_destroy};
