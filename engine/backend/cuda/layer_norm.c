/* layer_norm.c: layer_norm and its gradient: torch.nn.LayerNorm. The saved spread is the variance.
 */
#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/rows.h"
#include "engine/ops/attr.h"

static void *given(const struct node *node, const struct kernel_args *args, int i)
{
    return own_in(node, i) ? args->in[i] : NULL;
}

static void *wanted(const struct node *node, const struct kernel_args *args, int i)
{
    return own_out(node, i) ? args->out[i] : NULL;
}

/* Elements of a row. */
static int64_t row_of(const struct node *node)
{
    const struct layer_norm_attr *attr = node->attr;
    const struct shape *x = &node->in[0]->shape;
    int64_t n = 1;
    for (int i = x->rank - attr->dims; i < x->rank; i++)
        n *= x->dim[i];
    return n;
}

static int64_t rows_of(const struct node *node)
{
    return shape_count(&node->in[0]->shape) / row_of(node);
}

static int layer_norm_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct node *node = own->node;
    const struct layer_norm_attr *attr = node->attr;
    const struct layer_norm_launch norm = {
        .rows = rows_of(node),
        .n = row_of(node),
        .eps = attr->eps,
        .x = args->in[0],
        .w = given(node, args, 1),
        .b = given(node, args, 2),
        .y = args->out[0],
        .mean = wanted(node, args, 1),
        .variance = wanted(node, args, 2),
    };
    return own_launched(
        launch_layer_norm(own_is_bf16(own->choice->in[0]), &norm, own->device->compute), err);
}

static int layer_norm_grad_query(const struct node *node, const struct layout *const *in,
                                 struct arena *arena, struct kernel_choice *ret_choice,
                                 struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0 && (own_out(node, 1) || own_out(node, 2)))
        ret_choice->scratch_bytes =
            (size_t)layer_norm_scratch(rows_of(node), row_of(node)) * sizeof(float);
    return rc;
}

static int layer_norm_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct node *node = own->node;
    const struct layer_norm_attr *attr = node->attr;
    const struct layer_norm_grad_launch norm = {
        .rows = rows_of(node),
        .n = row_of(node),
        .eps = attr->eps,
        .x = args->in[0],
        .gy = args->in[1],
        .w = given(node, args, 2),
        .mean = args->in[3],
        .variance = args->in[4],
        .gx = args->out[0],
        .gw = wanted(node, args, 1),
        .gb = wanted(node, args, 2),
        .scratch = args->scratch,
    };
    return own_launched(
        launch_layer_norm_grad(own_is_bf16(own->choice->in[0]), &norm, own->device->compute), err);
}

const struct kernel kernel_layer_norm = {"layer_norm", own_query_plain, own_create, layer_norm_run,
                                         own_destroy};
const struct kernel kernel_layer_norm_grad = {"layer_norm_grad", layer_norm_grad_query, own_create,
                                              layer_norm_grad_run, own_destroy};
