/* recurrent.c: recurrent and its gradient: torch.nn.LSTM, GRU and RNN in one direction.
 *
 * The inputs' part of all gates is one product; then a step is a product of the states with their
 * weight, and one kernel of the cell. Back it is the same in the other order; the gradients of the
 * weights are products over all steps at the end. Where only some states are kept, the gradient
 * makes all of them again from x, in the scratch. In low precision the products are.
 */
#include "engine/backend/cuda/recurrent.h"

#include <stdlib.h>
#include <string.h>

#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/product.h"
#include "engine/backend/cuda/reduce.h"
#include "engine/ops/attr.h"

enum { X_GATES, H_GATES, GRAD_H, GRAD_X, GRAD_W_IH, GRAD_W_HH, N_PRODUCTS };
enum { X, W_IH, W_HH, B_IH, B_HH, LENGTHS };   /* inputs, of the gradient from 1 on */
enum { GY, GRAD_FIRST, Y = 7, STATES, GATES }; /* inputs of the gradient */
enum { GX, GW_IH, GW_HH, GB_IH, GB_HH };       /* its outputs */

/* Floats of scratch, one behind the other; NULL where there are none. */
struct room {
    float *x_gates, *h_gates, *y, *states, *gates;                   /* onward */
    float *gh, *past, *gstate, *gx_gates, *gh_gates, *before, *sums; /* back */
};

struct sizes {
    int64_t samples, steps, features, size, width;
    bool keeps_state, two_parts; /* the LSTM and the GRU; the GRU's gates have two gradients */
    int64_t every;               /* checkpoint_steps */
};

struct recurrent {
    struct own own;
    int first; /* input X */
    struct sizes sizes;
    struct product products[N_PRODUCTS];
};

static struct sizes sizes_of(const struct node *node, int first)
{
    const struct recurrent_attr *attr = node->attr;
    const struct shape *x = &node->in[first + X]->shape, *w = &node->in[first + W_HH]->shape;
    return (struct sizes){
        .samples = x->dim[0],
        .steps = x->dim[1],
        .features = x->dim[2],
        .size = w->dim[1],
        .width = w->dim[0],
        .keeps_state = attr->cell == CELL_LSTM || attr->cell == CELL_GRU,
        .two_parts = attr->cell == CELL_GRU,
        .every = attr->checkpoint_steps,
    };
}

/* Takes floats, each run aligned; base NULL: counts alone. */
static float *take(float *base, size_t *at, bool wanted, int64_t floats)
{
    float *here = base && wanted ? base + *at : NULL;
    if (wanted)
        *at += ((size_t)floats + 63) / 64 * 64;
    return here;
}

/* What of it onward needs: `states` and `gates` where the node does not give them. */
static size_t room_onward(const struct sizes *s, bool states, bool gates, float *base,
                          struct room *ret)
{
    int64_t rows = s->samples * s->steps;
    size_t at = 0;
    ret->x_gates = take(base, &at, true, rows * s->width);
    ret->h_gates = take(base, &at, true, s->samples * s->width);
    ret->states = take(base, &at, states, rows * s->size);
    ret->gates = take(base, &at, gates, rows * s->width);
    return at;
}

static size_t room_back(const struct sizes *s, float *base, struct room *ret)
{
    int64_t rows = s->samples * s->steps, row = s->samples * s->size;
    bool again = s->every > 0;
    size_t at = again ? room_onward(s, s->keeps_state, s->keeps_state, base, ret) : 0;
    ret->y = take(base, &at, again, rows * s->size);
    ret->gh = take(base, &at, true, row);
    ret->past = take(base, &at, true, row);
    ret->gstate = take(base, &at, true, row);
    ret->gx_gates = take(base, &at, true, rows * s->width);
    ret->gh_gates = take(base, &at, s->two_parts, rows * s->width);
    ret->before = take(base, &at, true, rows * s->size);
    ret->sums = take(base, &at, true, column_parts(rows) * s->width);
    return at;
}

static int recurrent_query(const struct node *node, const struct layout *const *in,
                           struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    const struct sizes s = sizes_of(node, 0);
    struct room room = {0};
    bool states = s.keeps_state && (!own_out(node, 1) || s.every > 0);
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = room_onward(&s, states, false, NULL, &room) * sizeof(float);
    return rc;
}

static int recurrent_grad_query(const struct node *node, const struct layout *const *in,
                                struct arena *arena, struct kernel_choice *ret_choice,
                                struct err *err)
{
    const struct sizes s = sizes_of(node, GRAD_FIRST);
    struct room room = {0};
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = room_back(&s, NULL, &room) * sizeof(float);
    return rc;
}

/* Rows of a tensor begin on a multiple of so many bytes. */
static uint32_t alignment(int64_t columns)
{
    uint32_t bytes = sizeof(float);
    for (; columns % 2 == 0 && bytes < 16; columns /= 2)
        bytes *= 2;
    return bytes;
}

static struct product_matrix rows(int64_t stride, bool transposed)
{
    return (struct product_matrix){.dtype = DTYPE_F32, .stride = stride, .transposed = transposed};
}

/* The products of all steps, and of one: rows of which are steps apart. */
static void describe(const struct sizes *s, bool low, struct product_shape *ret)
{
    int64_t n = s->samples, all = n * s->steps, f = s->features, h = s->size, w = s->width;
    const struct product_shape shapes[N_PRODUCTS] = {
        [X_GATES] = {all, w, f, 0, rows(0, false), rows(0, true), rows(0, false)},
        [H_GATES] = {n, w, h, 0, rows(s->steps * h, false), rows(0, true), rows(0, false)},
        [GRAD_H] = {n, h, w, 0, rows(s->steps * w, false), rows(0, false), rows(0, false)},
        [GRAD_X] = {all, f, w, 0, rows(0, false), rows(0, false), rows(0, false)},
        [GRAD_W_IH] = {w, f, all, 0, rows(0, true), rows(0, false), rows(0, false)},
        [GRAD_W_HH] = {w, h, all, 0, rows(0, true), rows(0, false), rows(0, false)},
    };
    memcpy(ret, shapes, sizeof shapes);
    for (int i = 0; i < N_PRODUCTS; i++)
        ret[i].low = low;
    ret[H_GATES].alignment = alignment(h);
    ret[GRAD_H].alignment = alignment(w);
}

static void recurrent_destroy(void *state)
{
    struct recurrent *recurrent = state;
    for (int i = 0; recurrent && i < N_PRODUCTS; i++)
        product_done(&recurrent->products[i]);
    free(recurrent);
}

/* Onward needs the first two products alone, and so does what makes the states again. */
static int create(struct device *device, const struct node *node,
                  const struct kernel_choice *choice, int first, void **ret_state, struct err *err)
{
    struct recurrent *recurrent = calloc(1, sizeof *recurrent);
    struct product_shape shapes[N_PRODUCTS];
    int n = first == 0 ? GRAD_H : N_PRODUCTS, rc = 0;
    if (!recurrent)
        return err_set(err, ERR_NOMEM, "no memory for a kernel");
    recurrent->own = (struct own){device, node, choice};
    recurrent->first = first;
    recurrent->sizes = sizes_of(node, first);
    describe(&recurrent->sizes, node->low, shapes);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = product_init(&recurrent->products[i], device, &shapes[i], err);
    if (rc)
        recurrent_destroy(recurrent);
    else
        *ret_state = recurrent;
    return rc;
}

static int recurrent_create(struct device *device, const struct node *node,
                            const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    return create(device, node, choice, 0, ret_state, err);
}

static int recurrent_grad_create(struct device *device, const struct node *node,
                                 const struct kernel_choice *choice, void **ret_state,
                                 struct err *err)
{
    return create(device, node, choice, GRAD_FIRST, ret_state, err);
}

static struct walk walk_of(const struct recurrent *r)
{
    const struct recurrent_attr *attr = r->own.node->attr;
    return (struct walk){
        .cell = (int)attr->cell,
        .samples = r->sizes.samples,
        .steps = r->sizes.steps,
        .size = r->sizes.size,
        .back = attr->by < 0,
    };
}

static void *given(const struct recurrent *r, const struct kernel_args *args, int i)
{
    return own_in(r->own.node, r->first + i) ? args->in[r->first + i] : NULL;
}

/* Where the row of sample 0 is, of a tensor [N, T, columns] at a step of the walk. */
static float *row_at(const struct walk *walk, float *tensor, int64_t step, int64_t columns)
{
    return tensor + (walk->back ? walk->steps - 1 - step : step) * columns;
}

/* All steps. */
static int run_onward(const struct recurrent *r, const struct kernel_args *args,
                      const struct room *room, float *y, struct err *err)
{
    struct walk walk = walk_of(r);
    const struct onward_launch onward = {
        .lengths = given(r, args, LENGTHS),
        .x_gates = room->x_gates,
        .h_gates = room->h_gates,
        .x_bias = given(r, args, B_IH),
        .h_bias = given(r, args, B_HH),
        .y = y,
        .states = room->states,
        .gates = room->gates,
    };
    int rc = product_run(&r->products[X_GATES], 1, given(r, args, X), given(r, args, W_IH), NULL,
                         room->x_gates, err);
    for (; rc == 0 && walk.step < walk.steps; walk.step++) {
        if (walk.step > 0)
            rc = product_run(&r->products[H_GATES], 1, row_at(&walk, y, walk.step - 1, walk.size),
                             given(r, args, W_HH), NULL, room->h_gates, err);
        if (rc == 0)
            rc = own_launched(launch_onward(&walk, &onward, r->own.device->compute), err);
    }
    return rc;
}

static int recurrent_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct recurrent *r = state;
    const struct node *node = r->own.node;
    const struct sizes *s = &r->sizes;
    const struct walk walk = walk_of(r);
    bool saves = own_out(node, 1) != NULL, all = saves && s->every == 0;
    struct room room = {0};
    room_onward(s, s->keeps_state && !all, false, args->scratch, &room);
    if (all) {
        room.states = args->out[1];
        room.gates = args->out[2];
    }
    int rc = run_onward(r, args, &room, args->out[0], err);
    if (rc || !saves || all)
        return rc;
    const struct recurrent_attr *attr = node->attr;
    return own_launched(launch_keep_some(&walk, s->every, args->out[0],
                                         attr->cell == CELL_LSTM ? room.states : NULL, args->out[1],
                                         r->own.device->compute),
                        err);
}

/* The way back: gradients of all gates. */
static int run_back(const struct recurrent *r, const struct kernel_args *args,
                    const struct room *room, struct err *err)
{
    struct walk walk = walk_of(r);
    const struct backward_launch backward = {
        .lengths = given(r, args, LENGTHS),
        .gy = args->in[GY],
        .y = room->y,
        .states = room->states,
        .gates = room->gates,
        .gh = room->gh,
        .past = room->past,
        .gstate = room->gstate,
        .gx_gates = room->gx_gates,
        .gh_gates = room->gh_gates,
    };
    int rc = 0;
    for (walk.step = walk.steps - 1; rc == 0 && walk.step >= 0; walk.step--) {
        rc = own_launched(launch_backward(&walk, &backward, r->own.device->compute), err);
        if (rc == 0 && walk.step > 0)
            rc = product_run(&r->products[GRAD_H], 1,
                             row_at(&walk, room->gh_gates, walk.step, r->sizes.width),
                             given(r, args, W_HH), NULL, room->gh, err);
    }
    return rc;
}

/* What one part of the gates gives to its weight and bias. */
static int leave_weight(const struct recurrent *r, const struct kernel_args *args, int product,
                        const float *gates, const float *from, int weight, int bias,
                        const struct room *room, struct err *err)
{
    const struct node *node = r->own.node;
    int64_t all = r->sizes.samples * r->sizes.steps;
    int rc = own_out(node, weight)
                 ? product_run(&r->products[product], 1, gates, from, NULL, args->out[weight], err)
                 : 0;
    return rc || !own_out(node, bias)
               ? rc
               : own_launched(launch_column_sums(false, gates, all, r->sizes.width, args->out[bias],
                                                 room->sums, r->own.device->compute),
                              err);
}

static int leave_gradients(const struct recurrent *r, const struct kernel_args *args,
                           const struct room *room, struct err *err)
{
    const struct walk walk = walk_of(r);
    int rc = own_out(r->own.node, GX) ? product_run(&r->products[GRAD_X], 1, room->gx_gates,
                                                    given(r, args, W_IH), NULL, args->out[GX], err)
                                      : 0;
    if (rc == 0)
        rc = leave_weight(r, args, GRAD_W_IH, room->gx_gates, given(r, args, X), GW_IH, GB_IH, room,
                          err);
    if (rc == 0)
        rc = own_launched(
            launch_states_before(&walk, room->y, room->before, r->own.device->compute), err);
    return rc ? rc
              : leave_weight(r, args, GRAD_W_HH, room->gh_gates, room->before, GW_HH, GB_HH, room,
                             err);
}

static int recurrent_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct recurrent *r = state;
    const struct node *node = r->own.node;
    struct room room = {0};
    room_back(&r->sizes, args->scratch, &room);
    if (!room.gh_gates)
        room.gh_gates = room.gx_gates;
    int rc = 0;
    if (r->sizes.every > 0) {
        rc = run_onward(r, args, &room, room.y, err);
    } else {
        room.y = args->in[Y];
        room.states = own_in(node, STATES) ? args->in[STATES] : NULL;
        room.gates = own_in(node, GATES) ? args->in[GATES] : NULL;
    }
    if (rc == 0)
        rc = run_back(r, args, &room, err);
    return rc ? rc : leave_gradients(r, args, &room, err);
}

const struct kernel kernel_recurrent = {"recurrent", recurrent_query, recurrent_create,
                                        recurrent_run, recurrent_destroy};
const struct kernel kernel_recurrent_grad = {"recurrent_grad", recurrent_grad_query,
                                             recurrent_grad_create, recurrent_grad_run,
                                             recurrent_destroy};
