/* own.c: see own.h. */
#include "engine/backend/cpu/own.h"

#include "engine/backend/cpu/real.h"

#include <stdlib.h>
#include <string.h>

const struct value *own_in(const struct node *node, int i)
{
    return i < node->n_in ? node->in[i] : NULL;
}

const struct value *own_out(const struct node *node, int i)
{
    return i < node->n_out ? node->out[i] : NULL;
}

int own_create(struct device *device, const struct node *node, const struct kernel_choice *choice,
               void **ret_state, struct err *err)
{
    (void)device;
    struct own *own = malloc(sizeof *own);
    if (!own)
        return err_set(err, ERR_NOMEM, "no memory for a kernel");
    *own = (struct own){node, choice};
    *ret_state = own;
    return 0;
}

void own_destroy(void *state)
{
    free(state);
}

static bool plain_all(struct arena *arena, struct value *const *values, int n,
                      const struct layout **ret)
{
    for (int i = 0; i < n; i++) {
        ret[i] = values[i] ? layout_plain(arena, &values[i]->shape, values[i]->dtype) : NULL;
        if (values[i] && !ret[i])
            return false;
    }
    return true;
}

int own_query_plain(const struct node *node, const struct layout *const *in, struct arena *arena,
                    struct kernel_choice *ret_choice, struct err *err)
{
    (void)in;
    struct kernel_choice choice = {.impl = "own"};
    for (int i = 0; i < NODE_MAX_OUT; i++)
        choice.inplace[i] = -1;
    if (!plain_all(arena, node->in, node->n_in, choice.in) ||
        !plain_all(arena, node->out, node->n_out, choice.out))
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    *ret_choice = choice;
    return 0;
}

int own_query_elementwise(const struct node *node, const struct layout *const *in,
                          struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    (void)arena;
    (void)err;
    const struct layout *common = in[0];
    for (int i = 0; i < node->n_in; i++)
        if (common->block == 1 && in[i]->block != 1)
            common = in[i];
    struct kernel_choice choice = {.impl = "own", .inplace = {0, -1, -1, -1, -1}};
    for (int i = 0; i < node->n_in; i++)
        choice.in[i] = common;
    choice.out[0] = common;
    *ret_choice = choice;
    return 0;
}

int own_query_dense(const struct node *node, const struct layout *const *in, struct arena *arena,
                    struct kernel_choice *ret_choice, struct err *err)
{
    struct kernel_choice choice;
    struct grid grid;
    int rc = own_query_elementwise(node, in, arena, &choice, err);
    if (rc)
        return rc;
    if (!layout_grid(choice.in[0], &grid) || grid.channels % grid.block != 0)
        return own_query_plain(node, in, arena, ret_choice, err);
    *ret_choice = choice;
    return 0;
}

int own_query_resized(const struct node *node, const struct layout *const *in, struct arena *arena,
                      struct kernel_choice *ret_choice, struct err *err)
{
    struct kernel_choice choice;
    int rc = own_query_plain(node, in, arena, &choice, err);
    if (rc)
        return rc;
    if (in[0]->block) {
        choice.in[0] = in[0];
        choice.out[0] = layout_blocked(arena, &node->out[0]->shape, in[0]->dtype, in[0]->block);
    }
    if (!choice.out[0])
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    choice.scratch_bytes = real_planes_scratch(&choice);
    *ret_choice = choice;
    return 0;
}
