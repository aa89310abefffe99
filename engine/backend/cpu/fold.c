/* fold.c: add and mul: two or more tensors of one shape, element by element, from left to right. In
 * BF16 each result is rounded, as PyTorch's. */
#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/real.h"
#include "engine/base/team.h"

typedef void fold_pair(const void *a, const void *b, void *out, int64_t n);

struct fold {
    char *const *in;
    int n_in;
    char *out;
    int64_t size; /* bytes of an element */
    fold_pair *pair;
};

/* The loops of one operator, in both types. */
#define PAIR(name, operator)                                                                       \
    VECTOR_CLONES static void name##_f32(const void *a, const void *b, void *out, int64_t n)       \
    {                                                                                              \
        const float *x = a, *y = b;                                                                \
        float *to = out;                                                                           \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] = x[i] operator y[i];            \
    }                                                                                              \
    VECTOR_CLONES static void name##_bf16(const void *a, const void *b, void *out, int64_t n)      \
    {                                                                                              \
        const uint16_t *x = a, *y = b;                                                             \
        uint16_t *to = out;                                                                        \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] =                                \
            real_round(real_widen(x[i]) operator real_widen(y[i]));                                \
    }

PAIR(add, +)
PAIR(mul, *)

/* In pieces that stay in the first-level cache between two tensors. */
enum { PIECE = 2048 };

static void fold_span(int64_t begin, int64_t end, void *context)
{
    const struct fold *fold = context;
    for (int64_t from = begin; from < end; from += PIECE) {
        int64_t n = from + PIECE < end ? PIECE : end - from, at = from * fold->size;
        const char *a = fold->in[0] + at;
        for (int k = 1; k < fold->n_in; k++) {
            fold->pair(a, fold->in[k] + at, fold->out + at, n);
            a = fold->out + at;
        }
    }
}

static void fold_run(const struct own *own, const struct kernel_args *args, fold_pair *f32,
                     fold_pair *bf16)
{
    const struct layout *layout = own->choice->out[0];
    struct fold fold = {
        .in = (char *const *)args->in,
        .n_in = own->node->n_in,
        .out = args->out[0],
        .size = (int64_t)dtype_size(layout->dtype),
        .pair = layout->dtype == DTYPE_BF16 ? bf16 : f32,
    };
    team_for(layout_count(layout), OWN_GRAIN, fold_span, &fold);
}

static int add_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    fold_run(state, args, add_f32, add_bf16);
    return 0;
}

static int mul_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    fold_run(state, args, mul_f32, mul_bf16);
    return 0;
}

const struct kernel kernel_add = {"add", own_query_elementwise, own_create, add_run, own_destroy};
const struct kernel kernel_mul = {"mul", own_query_elementwise, own_create, mul_run, own_destroy};
