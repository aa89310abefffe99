/* own.c: see own.h. */
#include "engine/backend/cuda/own.h"

#include <stdlib.h>

const struct value *own_in(const struct node *node, int i)
{
    return i < node->n_in ? node->in[i] : NULL;
}

const struct value *own_out(const struct node *node, int i)
{
    return i < node->n_out ? node->out[i] : NULL;
}

int64_t own_columns(const struct value *value)
{
    return value->shape.dim[value->shape.rank - 1];
}

int64_t own_rows(const struct value *value)
{
    return shape_count(&value->shape) / own_columns(value);
}

bool own_is_bf16(const struct layout *layout)
{
    return layout->dtype == DTYPE_BF16;
}

int64_t own_count(const struct layout *layout)
{
    return (int64_t)(layout->bytes / dtype_size(layout->dtype));
}

struct image own_image(const struct layout *layout)
{
    const struct shape *shape = &layout->shape;
    return (struct image){
        .samples = shape->dim[0],
        .channels = shape->dim[1],
        .height = shape->rank == 4 ? shape->dim[2] : 1,
        .width = shape->rank == 4 ? shape->dim[3] : 1,
        .channels_last = layout->channels_last,
    };
}

int own_create(struct device *device, const struct node *node, const struct kernel_choice *choice,
               void **ret_state, struct err *err)
{
    struct own *own = malloc(sizeof *own);
    if (!own)
        return err_set(err, ERR_NOMEM, "no memory for a kernel");
    *own = (struct own){device, node, choice};
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
        ret[i] = values[i] ? cuda_layout_plain(arena, &values[i]->shape, values[i]->dtype) : NULL;
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
        if (in[i]->channels_last)
            common = in[i];
    struct kernel_choice choice = {.impl = "own", .inplace = {0, -1, -1, -1, -1}};
    for (int i = 0; i < node->n_in; i++)
        choice.in[i] = common;
    choice.out[0] = common;
    *ret_choice = choice;
    return 0;
}

int own_query_elementwise_grad(const struct node *node, const struct layout *const *in,
                               struct arena *arena, struct kernel_choice *ret_choice,
                               struct err *err)
{
    int rc = own_query_elementwise(node, in, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->inplace[0] = 1;
    return rc;
}

int own_launched(cudaError_t status, struct err *err)
{
    return status_cuda(status, "the launch of its kernel", err);
}
