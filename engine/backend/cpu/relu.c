/* relu.c: relu, relu_grad: torch.nn.ReLU. NaN stays NaN (oneDNN's would hide a diverging job). */
#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/real.h"
#include "engine/base/team.h"

struct span {
    struct real a, b, out;
};

VECTOR_CLONES static void relu(const float *a, float *out, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] < 0 ? 0 : a[i];
}

VECTOR_CLONES static void relu_grad(const float *a, const float *b, float *out, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float gradient = b[i]; /* read in any case: a condition would cost the vectors */
        out[i] = a[i] <= 0 ? 0 : gradient;
    }
}

static void relu_span(int64_t begin, int64_t end, void *context)
{
    const struct span *span = context;
    float buffer[REAL_PIECE];
    for (int64_t from = begin; from < end; from += REAL_PIECE) {
        int64_t n = from + REAL_PIECE < end ? REAL_PIECE : end - from;
        float *out = real_room(span->out, from, buffer);
        relu(real_load(span->a, from, n, buffer), out, n);
        real_store(span->out, from, n, out);
    }
}

static void relu_grad_span(int64_t begin, int64_t end, void *context)
{
    const struct span *span = context;
    float buffer[2][REAL_PIECE];
    for (int64_t from = begin; from < end; from += REAL_PIECE) {
        int64_t n = from + REAL_PIECE < end ? REAL_PIECE : end - from;
        float *out = real_room(span->out, from, buffer[0]);
        relu_grad(real_load(span->a, from, n, buffer[0]), real_load(span->b, from, n, buffer[1]),
                  out, n);
        real_store(span->out, from, n, out);
    }
}

static int relu_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct layout *layout = own->choice->out[0];
    struct span span = {.a = real_of(args->in[0], layout), .out = real_of(args->out[0], layout)};
    team_for(layout_count(layout), OWN_GRAIN, relu_span, &span);
    return 0;
}

static int relu_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct layout *layout = own->choice->out[0];
    struct span span = {real_of(args->in[0], layout), real_of(args->in[1], layout),
                        real_of(args->out[0], layout)};
    team_for(layout_count(layout), OWN_GRAIN, relu_grad_span, &span);
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
