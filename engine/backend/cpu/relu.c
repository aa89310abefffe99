/* relu.c: relu, relu_grad: torch.nn.ReLU. NaN stays NaN (oneDNN's would hide a diverging job). */
#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"

struct span {
    const float *a, *b;
    float *out;
};

static void relu_span(int64_t begin, int64_t end, void *context)
{
    const struct span *span = context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        span->out[i] = span->a[i] < 0 ? 0 : span->a[i];
}

static void relu_grad_span(int64_t begin, int64_t end, void *context)
{
    const struct span *span = context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float gradient = span->b[i]; /* read in any case: a condition would cost the vectors */
        span->out[i] = span->a[i] <= 0 ? 0 : gradient;
    }
}

static int relu_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct span span = {args->in[0], NULL, args->out[0]};
    team_for((int64_t)(own->choice->out[0]->bytes / sizeof(float)), OWN_GRAIN, relu_span, &span);
    return 0;
}

static int relu_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct span span = {args->in[0], args->in[1], args->out[0]};
    team_for((int64_t)(own->choice->out[0]->bytes / sizeof(float)), OWN_GRAIN, relu_grad_span,
             &span);
    return 0;
}

static int relu_grad_query(const struct node *node, const struct layout *const *in,
                           struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_elementwise(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->inplace[0] = 1; /* gy dies here more often than y */
    return rc;
}

const struct kernel kernel_relu = {"relu", own_query_elementwise, own_create, relu_run,
                                   own_destroy};
const struct kernel kernel_relu_grad = {"relu_grad", relu_grad_query, own_create, relu_grad_run,
                                        own_destroy};
