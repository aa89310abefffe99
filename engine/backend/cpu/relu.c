/* relu.c: relu, relu_grad: torch.nn.ReLU. NaN stays NaN (oneDNN's would hide a diverging job).
 *
 * BF16 needs no float: the sign is the highest bit, and the bits of what is negative but no NaN lie
 * between those of -0 and of -infinity.
 */
#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/vector.h"
#include "engine/base/team.h"

enum { MINUS_ZERO = 0x8000, MINUS_INFINITY = 0xff80 }; /* as BF16 */

struct span {
    const void *a, *b;
    void *out;
};

VECTOR_CLONES static void relu_f32(int64_t begin, int64_t end, void *context)
{
    const struct span *span = context;
    const float *a = span->a;
    float *out = span->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        out[i] = a[i] < 0 ? 0 : a[i];
}

VECTOR_CLONES static void relu_bf16(int64_t begin, int64_t end, void *context)
{
    const struct span *span = context;
    const uint16_t *a = span->a;
    uint16_t *out = span->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        out[i] = a[i] > MINUS_ZERO && a[i] <= MINUS_INFINITY ? 0 : a[i];
}

VECTOR_CLONES static void relu_grad_f32(int64_t begin, int64_t end, void *context)
{
    const struct span *span = context;
    const float *a = span->a, *b = span->b;
    float *out = span->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float gradient = b[i]; /* read in any case: a condition would cost the vectors */
        out[i] = a[i] <= 0 ? 0 : gradient;
    }
}

VECTOR_CLONES static void relu_grad_bf16(int64_t begin, int64_t end, void *context)
{
    const struct span *span = context;
    const uint16_t *a = span->a, *b = span->b;
    uint16_t *out = span->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        uint16_t gradient = b[i];
        out[i] = a[i] == 0 || (a[i] >= MINUS_ZERO && a[i] <= MINUS_INFINITY) ? 0 : gradient;
    }
}

static int relu_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct layout *layout = own->choice->out[0];
    struct span span = {args->in[0], NULL, args->out[0]};
    team_for(layout_count(layout), OWN_GRAIN, layout->dtype == DTYPE_BF16 ? relu_bf16 : relu_f32,
             &span);
    return 0;
}

static int relu_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct layout *layout = own->choice->out[0];
    struct span span = {args->in[0], args->in[1], args->out[0]};
    team_for(layout_count(layout), OWN_GRAIN,
             layout->dtype == DTYPE_BF16 ? relu_grad_bf16 : relu_grad_f32, &span);
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
