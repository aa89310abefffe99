/* fold.c: add and mul: two or more tensors of one shape, element by element, from left to right. */
#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/real.h"
#include "engine/base/team.h"

struct fold {
    struct real in[NODE_MAX_IN], out;
    int n_in;
    void (*pair)(const float *a, const float *b, float *out, int64_t n);
};

VECTOR_CLONES static void add_pair(const float *a, const float *b, float *out, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

VECTOR_CLONES static void mul_pair(const float *a, const float *b, float *out, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] * b[i];
}

static void fold_span(int64_t begin, int64_t end, void *context)
{
    const struct fold *fold = context;
    float buffer[2][REAL_PIECE];
    for (int64_t from = begin; from < end; from += REAL_PIECE) {
        int64_t n = from + REAL_PIECE < end ? REAL_PIECE : end - from;
        const float *a = real_load(fold->in[0], from, n, buffer[0]);
        float *out = real_room(fold->out, from, buffer[0]);
        for (int k = 1; k < fold->n_in; k++) {
            fold->pair(a, real_load(fold->in[k], from, n, buffer[1]), out, n);
            a = out;
        }
        real_store(fold->out, from, n, out);
    }
}

static void fold_run(const struct own *own, const struct kernel_args *args,
                     void (*pair)(const float *, const float *, float *, int64_t))
{
    const struct layout *layout = own->choice->out[0];
    struct fold fold = {
        .out = real_of(args->out[0], layout), .n_in = own->node->n_in, .pair = pair};
    for (int i = 0; i < fold.n_in; i++)
        fold.in[i] = real_of(args->in[i], layout);
    team_for(layout_count(layout), OWN_GRAIN, fold_span, &fold);
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
