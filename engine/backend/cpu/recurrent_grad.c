/* recurrent_grad.c: recurrent_grad: the walk back through an LSTM, GRU or RNN.
 *
 * Each step gets the gradient that the one behind it carries and leaves rows of gates' gradients in
 * a block. When a block is full, its products are added to the weights' gradients, in the order of
 * the walk, and its part of the input's gradient is written. Where forward has kept a state now and
 * then only, the steps from there on are made once more, into scratch, before they are walked back:
 * the same blocks, the same products, hence the same bits.
 */
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#include "engine/backend/cpu/recurrent_walk.h"
#include "engine/backend/cpu/status.h"
#include "engine/base/team.h"

enum { GY, X, W_IH, W_HH, B_IH, B_HH, LENGTHS, Y, STATE, GATES };
enum { GX, GW_IH, GW_HH, GB_IH, GB_HH };

/* What is kept of the steps from `begin` on. */
struct segment {
    int64_t begin, end;
    const float *y, *state; /* [N, H] ahead of it */
};

struct backward {
    const struct walk *walk;
    struct onward onward; /* makes steps once more; else only its place for a packed block */
    struct segment segment;
    struct track gy, gx, y, gates, state;
    float *carry, *state_carry;  /* [N, H] */
    float *in, *hidden, *before; /* of a block: gradients of the two parts of the gates, one row
                                    but for the GRU [block, N, G * H]; y of the step before
                                    [block, N, H] */
    float *weight[2], *bias[2];  /* gradients; NULL: not wanted */
    int64_t now;
};

static const float *row_before(const struct backward *b, const struct track *track,
                               const float *first, int64_t n)
{
    if (b->now == b->segment.begin)
        return first + n * b->walk->size;
    return walk_row(track, n, b->now - 1);
}

/* Nothing flows through a step that is not there. */
static void clear_rows(const struct walk *walk, const struct cell_grad_rows *rows)
{
    walk_clear(rows->in, walk->width);
    walk_clear(rows->hidden, walk->width);
    walk_clear(rows->carry, walk->size);
    walk_clear(rows->state_carry, walk->size);
}

static void grad_samples(int64_t begin, int64_t end, void *context)
{
    const struct backward *b = context;
    const struct walk *walk = b->walk;
    int64_t slot = b->now % walk->block * walk->samples;
    for (int64_t n = begin; n < end; n++) {
        const float *before = row_before(b, &b->y, b->segment.y, n);
        struct cell_grad_rows rows = {
            .size = walk->size,
            .gy = walk_row(&b->gy, n, b->now),
            .y = walk_row(&b->y, n, b->now),
            .before = before,
            .carry = b->carry + n * walk->size,
            .state_carry = b->state_carry + n * walk->size,
            .in = b->in + (slot + n) * walk->width,
            .hidden = b->hidden + (slot + n) * walk->width,
        };
        memcpy(b->before + (slot + n) * walk->size, before, (size_t)walk->size * sizeof(float));
        if (walk_is_padding(walk, n, b->now)) {
            clear_rows(walk, &rows);
            continue;
        }
        if (b->gates.rows) {
            rows.gates = walk_row(&b->gates, n, b->now);
            rows.state = walk_row(&b->state, n, b->now);
            rows.state_before = row_before(b, &b->state, b->segment.state, n);
        }
        walk->cell->grad(&rows);
    }
}

static int product(const struct walk *walk, char transa, char transb, int64_t m, int64_t n,
                   int64_t k, const float *a, const float *b, float beta, float *c, struct err *err)
{
    return status_check(walk->gemm(transa, transb, m, n, k, 1, a, transa == 'N' ? k : m, b,
                                   transb == 'N' ? n : k, beta, c, n),
                        "recurrent product", err);
}

/* Adds what flows from the gates to the states before. */
static int carry_states(const struct backward *b, struct err *err)
{
    const struct walk *walk = b->walk;
    const float *hidden = b->hidden + b->now % walk->block * walk->samples * walk->width;
    return product(walk, 'N', 'N', walk->samples, walk->size, walk->width, hidden, walk->weight[1],
                   1, b->carry, err);
}

struct sum {
    const float *rows;
    int64_t n, width;
    float *to;
};

static void sum_columns(int64_t begin, int64_t end, void *context)
{
    const struct sum *sum = context;
    for (int64_t i = 0; i < sum->n; i++)
#pragma omp simd
        for (int64_t k = begin; k < end; k++)
            sum->to[k] += sum->rows[i * sum->width + k];
}

/* Adds a block to the gradients of a weight and its bias; the walk's last block, which comes first,
 * is written. */
static int add_block(const struct backward *b, int of, const float *gates, const float *x,
                     int64_t columns, int64_t block, struct err *err)
{
    const struct walk *walk = b->walk;
    int64_t rows = walk_block_steps(walk, block) * walk->samples;
    bool is_first = (block + 1) * walk->block >= walk->steps;
    if (b->bias[of]) {
        if (is_first)
            walk_clear(b->bias[of], walk->width);
        struct sum sum = {gates, rows, walk->width, b->bias[of]};
        team_for(walk->width, OWN_GRAIN / rows + 1, sum_columns, &sum);
    }
    if (!b->weight[of])
        return 0;
    return product(walk, 'T', 'N', walk->width, columns, rows, gates, x, is_first ? 0 : 1,
                   b->weight[of], err);
}

static int finish_block(const struct backward *b, int64_t block, struct err *err)
{
    const struct walk *walk = b->walk;
    float *packed = b->onward.packed;
    int64_t rows = walk_block_steps(walk, block) * walk->samples;
    if (b->weight[0])
        walk_pack(walk, &b->onward.x, walk->features, block, packed);
    int rc = add_block(b, 0, b->in, packed, walk->features, block, err);
    if (rc == 0)
        rc = add_block(b, 1, b->hidden, b->before, walk->size, block, err);
    if (rc != 0 || !b->gx.rows)
        return rc;
    rc = product(walk, 'N', 'N', rows, walk->features, walk->width, b->in, walk->weight[0], 0,
                 packed, err);
    walk_unpack(walk, packed, walk->features, block, &b->gx);
    return rc;
}

static int walk_back(struct backward *b, struct err *err)
{
    const struct walk *walk = b->walk;
    int rc = 0;
    for (b->now = b->segment.end - 1; rc == 0 && b->now >= b->segment.begin; b->now--) {
        team_for(walk->samples, walk_grain(walk), grad_samples, b);
        if (b->now > 0)
            rc = carry_states(b, err);
        if (rc == 0 && b->now % walk->block == 0)
            rc = finish_block(b, b->now / walk->block, err);
    }
    return rc;
}

/* Steps that scratch has room for. */
static int64_t segment_steps(const struct node *node, const struct walk *walk)
{
    const struct recurrent_attr *attr = node->attr;
    return attr->checkpoint_steps < walk->steps ? attr->checkpoint_steps : walk->steps;
}

/* Cells of one gate need no gates and no state for their gradients. */
static bool has_state(const struct walk *walk)
{
    return walk->width > walk->size;
}

static int walk_segments(struct backward *b, const struct node *node, const float *kept,
                         float *scratch, struct err *err)
{
    const struct walk *walk = b->walk;
    struct onward *onward = &b->onward;
    int64_t n = walk->samples, floats = n * walk->size, every = segment_steps(node, walk);
    int64_t states = node->in[STATE]->shape.dim[1];
    int rc = 0;
    for (int64_t i = node->in[STATE]->shape.dim[0]; rc == 0 && i-- > 0;) {
        int64_t begin = i * every;
        const float *y = kept + i * states * floats, *state = states == 2 ? y + floats : y;
        b->segment = (struct segment){
            begin, begin + every < walk->steps ? begin + every : walk->steps, y, state};
        b->y = onward->keep_y = walk_rows(walk, scratch, walk->size, begin);
        if (has_state(walk)) {
            float *rows = scratch + every * floats;
            b->state = onward->keep_state = walk_rows(walk, rows, walk->size, begin);
            b->gates = onward->keep_gates =
                walk_rows(walk, rows + every * floats, walk->width, begin);
        }
        memcpy(onward->y, y, (size_t)floats * sizeof *y);
        memcpy(onward->state, state, (size_t)floats * sizeof *state);
        rc = onward_steps(onward, begin, b->segment.end, err);
        if (rc == 0)
            rc = walk_back(b, err);
    }
    return rc;
}

/* All steps at once, as forward has kept them. */
static int walk_all(struct backward *b, const struct kernel_args *args, struct err *err)
{
    const struct walk *walk = b->walk;
    b->segment = (struct segment){0, walk->steps, b->onward.y, b->onward.state}; /* zeros */
    b->y = walk_tensor(walk, args->in[Y], walk->size);
    if (has_state(walk)) {
        b->state = walk_rows(walk, args->in[STATE], walk->size, 0);
        b->gates = walk_rows(walk, args->in[GATES], walk->width, 0);
    }
    return walk_back(b, err);
}

/* Gradients of the two parts of the gates are one row but for the GRU. */
static bool has_hidden(const struct node *node)
{
    return ((const struct recurrent_attr *)node->attr)->cell == CELL_GRU;
}

static int64_t backward_floats(const struct node *node, const struct walk *walk)
{
    int64_t row = walk->width * (1 + has_hidden(node)) + walk->size;
    return walk->samples * (walk->block * row + 2 * walk->size);
}

static float *take(float **scratch, int64_t n)
{
    float *taken = *scratch;
    *scratch += n;
    return taken;
}

static int recurrent_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct node *node = own->node;
    const struct walk walk = walk_of(node, X, args->in);
    const int64_t rows = walk.block * walk.samples, states = walk.samples * walk.size;
    float *scratch = args->scratch;
    struct backward b = {.walk = &walk};
    b.onward = onward_new(&walk, walk_tensor(&walk, args->in[X], walk.features), &scratch);
    b.carry = take(&scratch, states);
    b.state_carry = take(&scratch, states);
    walk_clear(b.carry, 2 * states);
    b.in = take(&scratch, rows * walk.width);
    b.hidden = has_hidden(node) ? take(&scratch, rows * walk.width) : b.in;
    b.before = take(&scratch, rows * walk.size);
    b.gy = walk_tensor(&walk, args->in[GY], walk.size);
    if (own_out(node, GX))
        b.gx = walk_tensor(&walk, args->out[GX], walk.features);
    for (int i = 0; i < 2; i++) {
        b.weight[i] = own_out(node, GW_IH + i) ? args->out[GW_IH + i] : NULL;
        b.bias[i] = own_out(node, GB_IH + i) ? args->out[GB_IH + i] : NULL;
    }
    return own_in(node, Y) ? walk_all(&b, args, err)
                           : walk_segments(&b, node, args->in[STATE], scratch, err);
}

/* A block of x, and of gy, is read before its rows of gx are written, which are as many. */
static int recurrent_grad_query(const struct node *node, const struct layout *const *in,
                                struct arena *arena, struct kernel_choice *ret_choice,
                                struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    const struct walk walk = walk_of(node, X, NULL);
    int64_t floats = onward_floats(&walk) + backward_floats(node, &walk);
    if (!own_in(node, Y))
        floats += segment_steps(node, &walk) * walk.samples *
                  (walk.size + has_state(&walk) * (walk.size + walk.width));
    ret_choice->scratch_bytes = (size_t)floats * sizeof(float);
    if (!own_in(node, Y))
        ret_choice->inplace[GX] = X;
    else if (walk.features == walk.size)
        ret_choice->inplace[GX] = GY;
    return 0;
}

const struct kernel kernel_recurrent_grad = {"recurrent_grad", recurrent_grad_query, own_create,
                                             recurrent_grad_run, own_destroy};
