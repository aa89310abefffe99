/* recurrent.c: recurrent and recurrent_grad: a walk over the steps of torch.nn.LSTM, GRU, RNN.
 *
 * A step is a product of all samples' states with the weight, where they lie, and then a row of
 * gates a sample, in parallel. Backward walks the other way with the gradient that each step
 * carries to the one before. Steps behind a sample's length are written as zeros, which are the
 * state that the direction back begins with.
 */
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/recurrent_cells.h"
#include "engine/backend/cpu/status.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

/* Rows of every sample and step; of the scratch, where only the last step is kept: step 0. */
struct track {
    float *rows;
    int64_t sample, step; /* distances */
};

struct walk {
    const struct cell *cell;
    const float *weight;                 /* [G * H, H] */
    const int64_t *lengths;              /* NULL: all steps are valid */
    int64_t samples, steps, size, width; /* N, T, H, G * H */
    int64_t by;                          /* 1: onward from the first step; -1 */
    int64_t now;                         /* the step where the walk is */
    const float *zeros;                  /* [H] */
};

/* w: the value of `weight`. */
static struct walk walk_of(const struct node *node, const struct value *w, const float *weight,
                           const int64_t *lengths)
{
    const struct recurrent_attr *attr = node->attr;
    const struct shape *x = &node->in[0]->shape;
    return (struct walk){
        .cell = &recurrent_cells[attr->cell],
        .weight = weight,
        .lengths = lengths,
        .samples = x->dim[0],
        .steps = x->dim[1],
        .size = w->shape.dim[1],
        .width = w->shape.dim[0],
        .by = attr->onward.by,
    };
}

static struct track track_of(const struct walk *walk, void *rows, int64_t width)
{
    return (struct track){rows, walk->steps * width, width};
}

static float *row(const struct track *track, int64_t sample, int64_t step)
{
    return track->rows + sample * track->sample + step * track->step;
}

static bool has_before(const struct walk *walk)
{
    int64_t before = walk->now - walk->by;
    return before >= 0 && before < walk->steps;
}

static bool is_padding(const struct walk *walk, int64_t sample, int64_t step)
{
    return walk->lengths && step >= walk->lengths[sample];
}

/* The sample's row of the step before; zeros at its first. */
static const float *row_before(const struct walk *walk, const struct track *track, int64_t sample)
{
    int64_t before = walk->now - walk->by;
    bool first = !has_before(walk) || is_padding(walk, sample, before);
    return first ? walk->zeros : row(track, sample, before);
}

static void clear(float *floats, int64_t n)
{
    memset(floats, 0, (size_t)n * sizeof *floats);
}

/* Samples a thread should have: an element of a gate costs as much as some of a copy. */
static int64_t grain(const struct walk *walk)
{
    return OWN_GRAIN / 8 / walk->width + 1;
}

struct forward {
    struct walk walk;
    const float *in, *bias; /* bias NULL: none */
    float *hidden;          /* [N, G * H] */
    struct track y, gates, state;
};

static void step_samples(int64_t begin, int64_t end, void *context)
{
    const struct forward *f = context;
    const struct walk *walk = &f->walk;
    for (int64_t n = begin; n < end; n++) {
        struct cell_rows rows = {
            .size = walk->size,
            .in = f->in + (n * walk->steps + walk->now) * walk->width,
            .hidden = f->hidden + n * walk->width,
            .before = row_before(walk, &f->y, n),
            .state_before = row_before(walk, &f->state, n),
            .y = row(&f->y, n, walk->now),
            .gates = row(&f->gates, n, walk->now),
            .state = row(&f->state, n, walk->now),
        };
        if (!is_padding(walk, n, walk->now)) {
            walk->cell->step(&rows);
            continue;
        }
        clear(rows.y, walk->size);
        clear(rows.gates, walk->width);
        clear(rows.state, walk->size);
    }
}

/* The states' part of the gates. */
static int project_states(const struct forward *f, struct err *err)
{
    const struct walk *walk = &f->walk;
    for (int64_t n = 0; n < walk->samples; n++)
        if (f->bias)
            memcpy(f->hidden + n * walk->width, f->bias, (size_t)walk->width * sizeof(float));
        else
            clear(f->hidden + n * walk->width, walk->width);
    if (!has_before(walk))
        return 0;
    return status_check(dnnl_sgemm('N', 'T', walk->samples, walk->width, walk->size, 1,
                                   row(&f->y, 0, walk->now - walk->by), f->y.sample, walk->weight,
                                   walk->size, 1, f->hidden, walk->width),
                        "recurrent product", err);
}

static int recurrent_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct node *node = own->node;
    struct forward f = {
        .walk = walk_of(node, node->in[1], args->in[1], own_in(node, 3) ? args->in[3] : NULL),
        .in = args->in[0],
        .bias = own_in(node, 2) ? args->in[2] : NULL,
        .hidden = args->scratch,
    };
    struct walk *walk = &f.walk;
    float *states = f.hidden + walk->samples * walk->width;
    float *zeros = states + walk->samples * walk->size;
    bool saves = own_out(node, 1);
    clear(zeros, walk->size);
    walk->zeros = zeros;
    f.y = track_of(walk, args->out[0], walk->size);
    f.gates = saves ? track_of(walk, args->out[1], walk->width)
                    : (struct track){f.hidden, walk->width, 0};
    f.state =
        saves ? track_of(walk, args->out[2], walk->size) : (struct track){states, walk->size, 0};
    for (int64_t i = 0; i < walk->steps; i++) {
        walk->now = walk->by > 0 ? i : walk->steps - 1 - i;
        int rc = project_states(&f, err);
        if (rc)
            return rc;
        team_for(walk->samples, grain(walk), step_samples, &f);
    }
    return 0;
}

struct backward {
    struct walk walk;
    struct track gy, y, gates, state, in, hidden;
    float *carry, *state_carry; /* [N, H] */
};

static void grad_samples(int64_t begin, int64_t end, void *context)
{
    const struct backward *b = context;
    const struct walk *walk = &b->walk;
    for (int64_t n = begin; n < end; n++) {
        struct cell_grad_rows rows = {
            .size = walk->size,
            .gy = row(&b->gy, n, walk->now),
            .y = row(&b->y, n, walk->now),
            .before = row_before(walk, &b->y, n),
            .carry = b->carry + n * walk->size,
            .state_carry = b->state_carry + n * walk->size,
            .in = row(&b->in, n, walk->now),
            .hidden = row(&b->hidden, n, walk->now),
        };
        if (is_padding(walk, n, walk->now)) {
            clear(rows.in, walk->width);
            clear(rows.hidden, walk->width);
            clear(rows.carry, walk->size);
            clear(rows.state_carry, walk->size);
            continue;
        }
        if (b->gates.rows) {
            rows.gates = row(&b->gates, n, walk->now);
            rows.state = row(&b->state, n, walk->now);
            rows.state_before = row_before(walk, &b->state, n);
        }
        walk->cell->grad(&rows);
    }
}

/* Adds what flows from the gates to the states before. */
static int carry_states(const struct backward *b, struct err *err)
{
    const struct walk *walk = &b->walk;
    if (!has_before(walk))
        return 0;
    return status_check(dnnl_sgemm('N', 'N', walk->samples, walk->size, walk->width, 1,
                                   row(&b->hidden, 0, walk->now), b->hidden.sample, walk->weight,
                                   walk->size, 1, b->carry, walk->size),
                        "recurrent product", err);
}

static int recurrent_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct node *node = own->node;
    struct backward b = {
        .walk = walk_of(node, node->in[2], args->in[2], own_in(node, 5) ? args->in[5] : NULL),
        .carry = args->scratch,
    };
    struct walk *walk = &b.walk;
    int64_t states = walk->samples * walk->size;
    b.state_carry = b.carry + states;
    clear(b.carry, 2 * states + walk->size);
    walk->zeros = b.carry + 2 * states;
    b.gy = track_of(walk, args->in[0], walk->size);
    b.y = track_of(walk, args->in[1], walk->size);
    if (own_in(node, 3)) {
        b.gates = track_of(walk, args->in[3], walk->width);
        b.state = track_of(walk, args->in[4], walk->size);
    }
    b.in = track_of(walk, args->out[0], walk->width);
    b.hidden = own_out(node, 1) ? track_of(walk, args->out[1], walk->width) : b.in;
    for (int64_t i = 0; i < walk->steps; i++) {
        walk->now = walk->by > 0 ? walk->steps - 1 - i : i;
        team_for(walk->samples, grain(walk), grad_samples, &b);
        int rc = carry_states(&b, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Floats of scratch: `rows` [N, H] and zeros [H]. */
static size_t scratch_bytes(const struct shape *x, int64_t rows, int64_t size)
{
    return (size_t)((x->dim[0] * rows + 1) * size) * sizeof(float);
}

static int recurrent_query(const struct node *node, const struct layout *const *in,
                           struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    const struct shape *w = &node->in[1]->shape;
    int64_t size = w->dim[1], gates = w->dim[0] / size;
    ret_choice->scratch_bytes = scratch_bytes(&node->in[0]->shape, gates + 1, size);
    if (own_out(node, 1))
        ret_choice->inplace[1] = 0;
    else if (gates == 1)
        ret_choice->inplace[0] = 0;
    return 0;
}

static int recurrent_grad_query(const struct node *node, const struct layout *const *in,
                                struct arena *arena, struct kernel_choice *ret_choice,
                                struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    ret_choice->scratch_bytes = scratch_bytes(&node->in[0]->shape, 2, node->in[0]->shape.dim[2]);
    ret_choice->inplace[0] = own_in(node, 3) ? 3 : 0;
    return 0;
}

const struct kernel kernel_recurrent = {"recurrent", recurrent_query, own_create, recurrent_run,
                                        own_destroy};
const struct kernel kernel_recurrent_grad = {"recurrent_grad", recurrent_grad_query, own_create,
                                             recurrent_grad_run, own_destroy};
