/* cat.c: cat and slice: tensors that follow each other in one dimension.
 *
 * A tensor is [outer, size, inner]: under each outer index an input is one run of memory of the
 * output. Channels that come in blocks are no exception, where no input has a padded channel: then
 * nothing is reordered between convolutions.
 */
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

struct copy {
    const char *from;
    char *to;
    int64_t from_step, to_step, length; /* bytes to the next outer index; that are copied */
};

static void copy_span(int64_t begin, int64_t end, void *context)
{
    const struct copy *copy = context;
    for (int64_t i = begin; i < end; i++)
        memcpy(copy->to + i * copy->to_step, copy->from + i * copy->from_step,
               (size_t)copy->length);
}

/* Bytes under one index of the dimensions before `dim`. */
static int64_t run_length(const struct value *value, int dim)
{
    int64_t length = (int64_t)dtype_size(value->dtype);
    for (int i = dim; i < value->shape.rank; i++)
        length *= value->shape.dim[i];
    return length;
}

static void copy_runs(const struct value *part, int dim, struct copy copy)
{
    copy.length = run_length(part, dim);
    team_for(run_length(part, 0) / copy.length, 4 * OWN_GRAIN / copy.length + 1, copy_span, &copy);
}

static int cat_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct cat_attr *attr = own->node->attr;
    const struct value *whole = own->node->out[0];
    for (int i = 0; i < own->node->n_in; i++) {
        const struct value *part = own->node->in[i];
        const struct slice_attr *at = &attr->part[i];
        struct copy copy = {
            .from = args->in[i],
            .to = (char *)args->out[0] + at->begin * run_length(whole, at->dim + 1),
            .from_step = run_length(part, at->dim),
            .to_step = run_length(whole, at->dim),
        };
        copy_runs(part, at->dim, copy);
    }
    return 0;
}

static int slice_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct slice_attr *at = own->node->attr;
    const struct value *whole = own->node->in[0], *part = own->node->out[0];
    struct copy copy = {
        .from = (const char *)args->in[0] + at->begin * run_length(whole, at->dim + 1),
        .to = args->out[0],
        .from_step = run_length(whole, at->dim),
        .to_step = run_length(part, at->dim),
    };
    copy_runs(part, at->dim, copy);
    return 0;
}

/* The block of channels in which the inputs come; 1 where it is no vector's. */
static int64_t common_block(const struct node *node, const struct layout *const *in)
{
    int64_t block = 1;
    for (int i = 0; i < node->n_in; i++)
        if (in[i]->block == 8 || in[i]->block == 16)
            block = in[i]->block;
    return block;
}

static bool channels_fill(const struct value *value, int64_t block)
{
    return value->shape.rank == 4 && value->shape.dim[1] % block == 0;
}

/* All values in blocks of channels. Errors: ERR_NOMEM. */
static int choose_blocks(const struct node *node, int64_t block, struct arena *arena,
                         struct kernel_choice *ret_choice, struct err *err)
{
    for (int i = 0; i < node->n_in; i++) {
        ret_choice->in[i] = layout_blocked(arena, &node->in[i]->shape, node->in[i]->dtype, block);
        if (!ret_choice->in[i])
            return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    }
    ret_choice->out[0] = layout_blocked(arena, &node->out[0]->shape, node->out[0]->dtype, block);
    return ret_choice->out[0] ? 0 : err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
}

static int cat_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                     struct kernel_choice *ret_choice, struct err *err)
{
    const struct cat_attr *attr = node->attr;
    int64_t block = common_block(node, in);
    bool blocks = block > 1 && attr->part[0].dim == 1;
    for (int i = 0; i < node->n_in; i++)
        blocks &= channels_fill(node->in[i], block);
    struct kernel_choice choice;
    int rc = own_query_plain(node, in, arena, &choice, err);
    if (rc == 0 && blocks)
        rc = choose_blocks(node, block, arena, &choice, err);
    if (rc == 0)
        *ret_choice = choice;
    return rc;
}

static int slice_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                       struct kernel_choice *ret_choice, struct err *err)
{
    const struct slice_attr *at = node->attr;
    int64_t block = common_block(node, in);
    bool blocks = block > 1 && at->dim == 1 && at->begin % block == 0 &&
                  channels_fill(node->in[0], block) && channels_fill(node->out[0], block);
    struct kernel_choice choice;
    int rc = own_query_plain(node, in, arena, &choice, err);
    if (rc == 0 && blocks)
        rc = choose_blocks(node, block, arena, &choice, err);
    if (rc == 0)
        *ret_choice = choice;
    return rc;
}

const struct kernel kernel_cat = {"cat", cat_query, own_create, cat_run, own_destroy};
const struct kernel kernel_slice = {"slice", slice_query, own_create, slice_run, own_destroy};
