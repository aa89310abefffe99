/* recurrent_walk.c: see recurrent_walk.h. */
#include "engine/backend/cpu/recurrent_walk.h"

#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#include "engine/backend/cpu/status.h"
#include "engine/base/team.h"

/* Rows that a block's products should have, and the most steps: scratch grows with them. */
enum { BLOCK_ROWS = 128, BLOCK_STEPS = 16 };

static int64_t block_steps(int64_t samples, int64_t steps)
{
    int64_t block = (BLOCK_ROWS + samples - 1) / samples;
    block = block < BLOCK_STEPS ? block : BLOCK_STEPS;
    return block < steps ? block : steps;
}

struct walk walk_of(const struct node *node, int first, void *const *in)
{
    const struct recurrent_attr *attr = node->attr;
    const struct shape *x = &node->in[first]->shape, *w = &node->in[first + 2]->shape;
    struct walk walk = {
        .cell = &recurrent_cells[attr->cell],
        .samples = x->dim[0],
        .steps = x->dim[1],
        .features = x->dim[2],
        .size = w->dim[1],
        .width = w->dim[0],
        .block = block_steps(x->dim[0], x->dim[1]),
        .back = attr->by < 0,
        .gemm = node->low ? gemm_bf16 : dnnl_sgemm,
    };
    for (int i = 0; in && i < 2; i++) {
        walk.weight[i] = in[first + 1 + i];
        walk.bias[i] = own_in(node, first + 3 + i) ? in[first + 3 + i] : NULL;
    }
    if (in && own_in(node, first + 5))
        walk.lengths = in[first + 5];
    return walk;
}

struct track walk_tensor(const struct walk *walk, void *tensor, int64_t columns)
{
    float *rows = tensor;
    if (!walk->back)
        return (struct track){rows, walk->steps * columns, columns, 0};
    return (struct track){rows + (walk->steps - 1) * columns, walk->steps * columns, -columns, 0};
}

struct track walk_rows(const struct walk *walk, void *rows, int64_t columns, int64_t first)
{
    return (struct track){rows, columns, walk->samples * columns, first};
}

float *walk_row(const struct track *track, int64_t sample, int64_t step)
{
    return track->rows + sample * track->sample + (step - track->first) * track->step;
}

bool walk_is_padding(const struct walk *walk, int64_t sample, int64_t step)
{
    int64_t at = walk->back ? walk->steps - 1 - step : step;
    return walk->lengths && at >= walk->lengths[sample];
}

/* An element of a gate costs as much as some of a copy. */
int64_t walk_grain(const struct walk *walk)
{
    return OWN_GRAIN / 8 / walk->width + 1;
}

void walk_clear(float *floats, int64_t n)
{
    memset(floats, 0, (size_t)n * sizeof *floats);
}

int64_t walk_block_steps(const struct walk *walk, int64_t block)
{
    int64_t left = walk->steps - block * walk->block;
    return left < walk->block ? left : walk->block;
}

struct copy {
    const struct walk *walk;
    const struct track *track;
    float *packed;
    int64_t columns, block;
    bool unpack;
};

static void copy_samples(int64_t begin, int64_t end, void *context)
{
    const struct copy *copy = context;
    int64_t steps = walk_block_steps(copy->walk, copy->block);
    size_t bytes = (size_t)copy->columns * sizeof(float);
    for (int64_t n = begin; n < end; n++)
        for (int64_t i = 0; i < steps; i++) {
            float *packed = copy->packed + (i * copy->walk->samples + n) * copy->columns;
            float *row = walk_row(copy->track, n, copy->block * copy->walk->block + i);
            memcpy(copy->unpack ? row : packed, copy->unpack ? packed : row, bytes);
        }
}

static void copy_block(const struct copy *copy)
{
    int64_t row = copy->columns * walk_block_steps(copy->walk, copy->block);
    team_for(copy->walk->samples, OWN_GRAIN / row + 1, copy_samples, (void *)copy);
}

void walk_pack(const struct walk *walk, const struct track *from, int64_t columns, int64_t block,
               float *to)
{
    copy_block(&(struct copy){walk, from, to, columns, block, false});
}

void walk_unpack(const struct walk *walk, const float *from, int64_t columns, int64_t block,
                 const struct track *to)
{
    copy_block(&(struct copy){walk, to, (float *)from, columns, block, true});
}

int64_t onward_floats(const struct walk *walk)
{
    return walk->samples *
           (walk->block * (walk->features + walk->width) + walk->width + 2 * walk->size);
}

static float *take(float **scratch, int64_t n)
{
    float *taken = *scratch;
    *scratch += n;
    return taken;
}

struct onward onward_new(const struct walk *walk, struct track x, float **scratch)
{
    int64_t n = walk->samples;
    struct onward onward = {
        .walk = walk,
        .x = x,
        .packed = take(scratch, walk->block * n * walk->features),
        .in = take(scratch, walk->block * n * walk->width),
        .projected = -1,
        .hidden = take(scratch, n * walk->width),
        .y = take(scratch, n * walk->size),
        .state = take(scratch, n * walk->size),
    };
    walk_clear(onward.y, 2 * n * walk->size);
    return onward;
}

/* Rows that a product is added to. */
static void begin_rows(const struct walk *walk, const float *bias, int64_t n, float *rows)
{
    for (int64_t i = 0; i < n; i++)
        if (bias)
            memcpy(rows + i * walk->width, bias, (size_t)walk->width * sizeof *rows);
        else
            walk_clear(rows + i * walk->width, walk->width);
}

/* rows [n, G * H] = from [n, columns] · weight's transpose + bias. */
static int project(const struct walk *walk, int of, const float *from, int64_t columns, int64_t n,
                   float *rows, struct err *err)
{
    begin_rows(walk, walk->bias[of], n, rows);
    return status_check(walk->gemm('N', 'T', n, walk->width, columns, 1, from, columns,
                                   walk->weight[of], columns, 1, rows, walk->width),
                        "recurrent product", err);
}

static int project_block(struct onward *onward, int64_t block, struct err *err)
{
    const struct walk *walk = onward->walk;
    if (onward->projected == block)
        return 0;
    onward->projected = block;
    walk_pack(walk, &onward->x, walk->features, block, onward->packed);
    return project(walk, 0, onward->packed, walk->features,
                   walk_block_steps(walk, block) * walk->samples, onward->in, err);
}

static void keep(const struct track *track, int64_t n, int64_t step, const float *row,
                 int64_t columns)
{
    if (track->rows)
        memcpy(walk_row(track, n, step), row, (size_t)columns * sizeof *row);
}

static void step_samples(int64_t begin, int64_t end, void *context)
{
    const struct onward *onward = context;
    const struct walk *walk = onward->walk;
    int64_t slot = onward->now % walk->block * walk->samples;
    for (int64_t n = begin; n < end; n++) {
        float *y = onward->y + n * walk->size, *state = onward->state + n * walk->size;
        float *hidden = onward->hidden + n * walk->width;
        if (walk_is_padding(walk, n, onward->now)) {
            walk_clear(y, walk->size);
            walk_clear(state, walk->size);
            walk_clear(hidden, walk->width);
        } else {
            walk->cell->step(&(struct cell_rows){
                .size = walk->size,
                .in = onward->in + (slot + n) * walk->width,
                .hidden = hidden,
                .before = y,
                .state_before = state,
                .y = y,
                .gates = hidden,
                .state = state,
            });
        }
        keep(&onward->keep_y, n, onward->now, y, walk->size);
        keep(&onward->keep_state, n, onward->now, state, walk->size);
        keep(&onward->keep_gates, n, onward->now, hidden, walk->width);
    }
}

int onward_steps(struct onward *onward, int64_t begin, int64_t end, struct err *err)
{
    const struct walk *walk = onward->walk;
    int rc = 0;
    for (onward->now = begin; rc == 0 && onward->now < end; onward->now++) {
        rc = project_block(onward, onward->now / walk->block, err);
        if (rc == 0)
            rc = project(walk, 1, onward->y, walk->size, walk->samples, onward->hidden, err);
        if (rc == 0)
            team_for(walk->samples, walk_grain(walk), step_samples, onward);
    }
    return rc;
}
