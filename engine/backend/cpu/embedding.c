/* embedding.c: embedding and its weight's gradient: torch.nn.Embedding.
 *
 * The gradient is parted over columns: each thread adds, for its columns, the rows of all samples
 * in their order. So an integer that is met often neither needs an atomic nor leaves a thread
 * alone, and the bits do not depend on the threads.
 */
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/vector.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

/* The integers index memory: they are not left to the loader alone. */
static int check_indices(const int64_t *index, const struct shape *shape, int64_t rows,
                         const struct step *step, struct err *err)
{
    int64_t n = shape_count(shape);
    for (int64_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= rows)
            return err_set(err, ERR_DATA_INVALID,
                           "sample %lld of the epoch has the integer %lld, and there are %lld "
                           "embeddings",
                           (long long)(step->first_sample + i / (n / shape->dim[0])),
                           (long long)index[i], (long long)rows);
    return 0;
}

struct lookup {
    const int64_t *index;
    const float *w;
    float *y;
    int64_t size; /* of a vector */
};

static void copy_rows(int64_t begin, int64_t end, void *context)
{
    const struct lookup *lookup = context;
    for (int64_t i = begin; i < end; i++)
        memcpy(lookup->y + i * lookup->size, lookup->w + lookup->index[i] * lookup->size,
               (size_t)lookup->size * sizeof(float));
}

static int embedding_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct shape *shape = &own->node->in[0]->shape, *w = &own->node->in[1]->shape;
    int rc = check_indices(args->in[0], shape, w->dim[0], args->step, err);
    if (rc)
        return rc;
    struct lookup lookup = {args->in[0], args->in[1], args->out[0], w->dim[1]};
    team_for(shape_count(shape), OWN_GRAIN / w->dim[1] + 1, copy_rows, &lookup);
    return 0;
}

struct gather {
    const int64_t *index;
    const float *gy;
    float *gw;
    int64_t n, rows, size, padding_row;
};

VECTOR_CLONES static void add_columns(const struct gather *gather, int64_t begin, int64_t end)
{
    for (int64_t r = 0; r < gather->rows; r++)
        memset(gather->gw + r * gather->size + begin, 0, (size_t)(end - begin) * sizeof(float));
    for (int64_t i = 0; i < gather->n; i++) {
        if (gather->index[i] == gather->padding_row)
            continue;
        const float *gy = gather->gy + i * gather->size;
        float *gw = gather->gw + gather->index[i] * gather->size;
#pragma omp simd
        for (int64_t c = begin; c < end; c++)
            gw[c] += gy[c];
    }
}

static void gather_columns(int64_t begin, int64_t end, void *context)
{
    add_columns(context, begin, end);
}

static int embedding_weight_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err; /* the forward of this step has checked the integers */
    const struct own *own = state;
    const struct embedding_attr *attr = own->node->attr;
    const struct shape *w = &own->node->out[0]->shape;
    struct gather gather = {
        .index = args->in[0],
        .gy = args->in[1],
        .gw = args->out[0],
        .n = shape_count(&own->node->in[0]->shape),
        .rows = w->dim[0],
        .size = w->dim[1],
        .padding_row = attr->padding_row,
    };
    team_for(w->dim[1], OWN_GRAIN / (gather.n + gather.rows) + 1, gather_columns, &gather);
    return 0;
}

const struct kernel kernel_embedding = {"embedding", own_query_plain, own_create, embedding_run,
                                        own_destroy};
const struct kernel kernel_embedding_weight_grad = {
    "embedding_weight_grad", own_query_plain, own_create, embedding_weight_grad_run, own_destroy};
