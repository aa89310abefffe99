/* recurrent.c: recurrent: torch.nn.LSTM, GRU, RNN, one layer in one direction.
 *
 * A step is a product of all samples' states with the weight, and then a row of gates a sample, in
 * parallel. Steps behind a sample's length are written as zeros, which are the state that the
 * direction back begins with.
 */
#include <string.h>

#include "engine/backend/cpu/recurrent_walk.h"

/* What the gradient needs of every step. */
static void keep_all(struct onward *onward, const struct kernel_args *args)
{
    const struct walk *walk = onward->walk;
    onward->keep_state = walk_rows(walk, args->out[1], walk->size, 0);
    onward->keep_gates = walk_rows(walk, args->out[2], walk->width, 0);
}

/* The state ahead of every so many steps: y, and the cell's of an LSTM. */
static int keep_some(struct onward *onward, float *kept, const struct shape *shape, int64_t every,
                     struct err *err)
{
    const struct walk *walk = onward->walk;
    size_t floats = (size_t)(walk->samples * walk->size), bytes = floats * sizeof *kept;
    int rc = 0;
    for (int64_t begin = 0; rc == 0 && begin < walk->steps; begin += every) {
        memcpy(kept, onward->y, bytes);
        if (shape->dim[1] == 2)
            memcpy(kept + floats, onward->state, bytes);
        kept += floats * (size_t)shape->dim[1];
        rc = onward_steps(onward, begin, begin + every < walk->steps ? begin + every : walk->steps,
                          err);
    }
    return rc;
}

static int recurrent_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct node *node = own->node;
    const struct recurrent_attr *attr = node->attr;
    const struct walk walk = walk_of(node, 0, args->in);
    float *scratch = args->scratch;
    struct onward onward =
        onward_new(&walk, walk_tensor(&walk, args->in[0], walk.features), &scratch);
    onward.keep_y = walk_tensor(&walk, args->out[0], walk.size);
    const struct value *kept = own_out(node, 1);
    if (kept && attr->checkpoint_steps > 0)
        return keep_some(&onward, args->out[1], &kept->shape, attr->checkpoint_steps, err);
    if (kept)
        keep_all(&onward, args);
    return onward_steps(&onward, 0, walk.steps, err);
}

/* A block of x is read before its rows of y are written, which are as many. */
static int recurrent_query(const struct node *node, const struct layout *const *in,
                           struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    const struct walk walk = walk_of(node, 0, NULL);
    ret_choice->scratch_bytes = (size_t)onward_floats(&walk) * sizeof(float);
    ret_choice->inplace[0] = walk.features == walk.size ? 0 : -1;
    return 0;
}

const struct kernel kernel_recurrent = {"recurrent", recurrent_query, own_create, recurrent_run,
                                        own_destroy};
