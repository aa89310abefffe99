/* add.c: the sum of two or more tensors of one shape, from left to right. */
#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"

struct terms {
    void *const *in;
    int n_in;
    float *out;
};

/* In pieces that stay in the first-level cache between two terms. */
enum { PIECE = 2048 };

static void add_span(int64_t begin, int64_t end, void *context)
{
    const struct terms *terms = context;
    for (int64_t from = begin; from < end; from += PIECE) {
        int64_t to = from + PIECE < end ? from + PIECE : end;
        const float *a = terms->in[0];
        for (int k = 1; k < terms->n_in; k++) {
            const float *b = terms->in[k];
#pragma omp simd
            for (int64_t i = from; i < to; i++)
                terms->out[i] = a[i] + b[i];
            a = terms->out;
        }
    }
}

static int add_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    struct terms terms = {args->in, own->node->n_in, args->out[0]};
    team_for((int64_t)(own->choice->out[0]->bytes / sizeof(float)), OWN_GRAIN, add_span, &terms);
    return 0;
}

const struct kernel kernel_add = {"add", own_query_elementwise, own_create, add_run, own_destroy};
