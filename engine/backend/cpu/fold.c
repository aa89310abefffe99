/* fold.c: add and mul: two or more tensors of one shape, element by element, from left to right. */
#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"

struct fold {
    void *const *in;
    int n_in;
    float *out;
    void (*pair)(const float *a, const float *b, float *out, int64_t n);
};

static void add_pair(const float *a, const float *b, float *out, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

static void mul_pair(const float *a, const float *b, float *out, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] * b[i];
}

/* In pieces that stay in the first-level cache between two tensors. */
enum { PIECE = 2048 };

static void fold_span(int64_t begin, int64_t end, void *context)
{
    const struct fold *fold = context;
    for (int64_t from = begin; from < end; from += PIECE) {
        int64_t n = from + PIECE < end ? PIECE : end - from;
        const float *a = (const float *)fold->in[0] + from;
        for (int k = 1; k < fold->n_in; k++) {
            fold->pair(a, (const float *)fold->in[k] + from, fold->out + from, n);
            a = fold->out + from;
        }
    }
}

static void fold_run(const struct own *own, const struct kernel_args *args,
                     void (*pair)(const float *, const float *, float *, int64_t))
{
    struct fold fold = {args->in, own->node->n_in, args->out[0], pair};
    team_for((int64_t)(own->choice->out[0]->bytes / sizeof(float)), OWN_GRAIN, fold_span, &fold);
}

static int add_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    fold_run(state, args, add_pair);
    return 0;
}

static int mul_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    fold_run(state, args, mul_pair);
    return 0;
}

const struct kernel kernel_add = {"add", own_query_elementwise, own_create, add_run, own_destroy};
const struct kernel kernel_mul = {"mul", own_query_elementwise, own_create, mul_run, own_destroy};
