/* positional_embedding.c: positional_embedding and its weight's gradient: a vector a step. */
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/vector.h"
#include "engine/base/team.h"

struct positions {
    const float *x, *w; /* x, or gy */
    float *out;         /* y, or gw */
    int64_t n, size;    /* samples; floats of one: steps times a vector */
};

static void add_samples(int64_t begin, int64_t end, void *context)
{
    const struct positions *p = context;
    for (int64_t i = begin; i < end; i++) {
        const float *x = p->x + i * p->size;
        float *y = p->out + i * p->size;
#pragma omp simd
        for (int64_t k = 0; k < p->size; k++)
            y[k] = x[k] + p->w[k];
    }
}

static int positional_embedding_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct shape *shape = &own->node->in[0]->shape;
    struct positions p = {
        .x = args->in[0],
        .w = args->in[1],
        .out = args->out[0],
        .size = shape->dim[1] * shape->dim[2],
    };
    team_for(shape->dim[0], OWN_GRAIN / p.size + 1, add_samples, &p);
    return 0;
}

/* The samples in their order, for a part of the floats of one. */
static void sum_samples(int64_t begin, int64_t end, void *context)
{
    const struct positions *p = context;
    memcpy(p->out + begin, p->x + begin, (size_t)(end - begin) * sizeof(float));
    for (int64_t i = 1; i < p->n; i++) {
        const float *gy = p->x + i * p->size;
#pragma omp simd
        for (int64_t k = begin; k < end; k++)
            p->out[k] += gy[k];
    }
}

static int positional_embedding_weight_grad_run(void *state, const struct kernel_args *args,
                                                struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct shape *shape = &own->node->in[0]->shape;
    int64_t rows = own->node->out[0]->shape.dim[0];
    struct positions p = {
        .x = args->in[0],
        .out = args->out[0],
        .n = shape->dim[0],
        .size = shape->dim[1] * shape->dim[2],
    };
    team_for(p.size, OWN_GRAIN / p.n + 1, sum_samples, &p);
    memset(p.out + p.size, 0, (size_t)((rows - shape->dim[1]) * shape->dim[2]) * sizeof(float));
    return 0;
}

static int positional_embedding_query(const struct node *node, const struct layout *const *in,
                                      struct arena *arena, struct kernel_choice *ret_choice,
                                      struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->inplace[0] = 0;
    return rc;
}

const struct kernel kernel_positional_embedding = {"positional_embedding",
                                                   positional_embedding_query, own_create,
                                                   positional_embedding_run, own_destroy};
const struct kernel kernel_positional_embedding_weight_grad = {
    "positional_embedding_weight_grad", own_query_plain, own_create,
    positional_embedding_weight_grad_run, own_destroy};
