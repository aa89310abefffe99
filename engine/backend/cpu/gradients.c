/* gradients.c: zero, all_reduce: a run of gradient variables as one flat buffer. */
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"

/* From the first variable's begin to the last one's end; the variables between, and the gaps of
 * alignment, lie in it. */
static size_t flat_count(const struct own *own, const struct kernel_args *args)
{
    const float *first = args->in[0], *last = args->in[1];
    return (size_t)(last - first) + (size_t)shape_count(&own->node->in[1]->shape);
}

static void zero_span(int64_t begin, int64_t end, void *context)
{
    memset((float *)context + begin, 0, (size_t)(end - begin) * sizeof(float));
}

static int zero_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    team_for((int64_t)flat_count(state, args), OWN_GRAIN, zero_span, args->in[0]);
    return 0;
}

static int all_reduce_run(void *state, const struct kernel_args *args, struct err *err)
{
    struct collective *collective = args->collective;
    if (!collective)
        return 0;
    return collective->all_reduce(collective, args->in[0], flat_count(state, args), err);
}

struct scaled {
    float *data;
    float scale;
};

static void scale_span(int64_t begin, int64_t end, void *context)
{
    const struct scaled *scaled = context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        scaled->data[i] *= scaled->scale;
}

static int scale_run(void *state, const struct kernel_args *args, struct err *err)
{
    struct scaled scaled = {args->in[0], (float)args->step->gradient_scale};
    (void)err;
    team_for((int64_t)flat_count(state, args), OWN_GRAIN, scale_span, &scaled);
    return 0;
}

const struct kernel kernel_scale = {"scale", own_query_plain, own_create, scale_run, own_destroy};
const struct kernel kernel_zero = {"zero", own_query_plain, own_create, zero_run, own_destroy};
const struct kernel kernel_all_reduce = {"all_reduce", own_query_plain, own_create, all_reduce_run,
                                         own_destroy};
