/* dropout.c: dropout and its gradient, which is the same map: torch.nn.Dropout in training.
 *
 * Nothing is stored: whether an element is kept is a function of (seed, layer, step, the sample's
 * position in the epoch's order, the element's index in the sample, row-major), so that layout,
 * chunking and the number of devices never matter. Four neighbouring elements share a Philox block.
 */
#include <math.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/real.h"
#include "engine/base/rng.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

enum { WORDS = 4 };

struct dropout {
    struct real in, out;
    struct grid grid;
    struct rng_key key;
    uint64_t first_sample;
    int64_t count;      /* elements of a sample */
    uint32_t threshold; /* p in units of rng_uniform's 2^-24, rounded up */
    float factor[2];    /* of a dropped and of a kept element */
};

/* Where element `e` (row-major) of sample `n` lies. */
static int64_t element_offset(const struct grid *grid, int64_t n, int64_t e)
{
    int64_t pixels = grid->h * grid->w, channel = e / pixels;
    int64_t plane = n * grid->blocks + channel / grid->block;
    return (plane * pixels + e % pixels) * grid->block + channel % grid->block;
}

static void drop_four(const struct dropout *dropout, int64_t n, int64_t block)
{
    uint32_t words[WORDS];
    rng_block(dropout->key, dropout->first_sample + (uint64_t)n, (uint64_t)block, words);
    for (int i = 0; i < WORDS && block * WORDS + i < dropout->count; i++) {
        int64_t e = block * WORDS + i;
        int64_t at = dropout->grid.block == 1 ? n * dropout->count + e
                                              : element_offset(&dropout->grid, n, e);
        bool keep = words[i] >> 8 >= dropout->threshold; /* rng_uniform(words[i]) >= p */
        real_set(dropout->out, at, real_get(dropout->in, at) * dropout->factor[keep]);
    }
}

static void drop_blocks(int64_t begin, int64_t end, void *context)
{
    const struct dropout *dropout = context;
    int64_t n_blocks = (dropout->count + WORDS - 1) / WORDS;
    for (int64_t i = begin; i < end; i++)
        drop_four(dropout, i / n_blocks, i % n_blocks);
}

static int dropout_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct dropout_attr *attr = own->node->attr;
    const struct shape *shape = &own->node->in[0]->shape;
    struct rng_key layer = rng_key(args->step->seed, RNG_DROPOUT, (uint64_t)attr->layer);
    struct dropout dropout = {
        .in = real_of(args->in[0], own->choice->in[0]),
        .out = real_of(args->out[0], own->choice->out[0]),
        .key = rng_subkey(layer, (uint64_t)args->step->number),
        .first_sample = (uint64_t)args->step->first_sample,
        .count = shape_count(shape) / shape->dim[0],
        .threshold = (uint32_t)ceil(attr->p * 0x1p24),
        .factor = {0, attr->p < 1 ? (float)(1 / (1 - attr->p)) : 0},
    };
    layout_grid(own->choice->in[0], &dropout.grid);
    team_for(shape->dim[0] * ((dropout.count + WORDS - 1) / WORDS), OWN_GRAIN / 16, drop_blocks,
             &dropout);
    return 0;
}

const struct kernel kernel_dropout = {"dropout", own_query_dense, own_create, dropout_run,
                                      own_destroy};
const struct kernel kernel_dropout_grad = {"dropout_grad", own_query_dense, own_create, dropout_run,
                                           own_destroy};
