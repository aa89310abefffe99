/* cat.c: torch.cat of two or more tensors. The gradient of each input is its slice of the output's.
 */
#include <inttypes.h>

#include "engine/ops/attr.h"
#include "engine/ops/dim.h"
#include "engine/ops/registry.h"

/* Whether the shapes are equal but for one dimension. */
static bool fit(const struct shape *a, const struct shape *b, int dim)
{
    struct shape like = *b;
    like.dim[dim] = a->dim[dim];
    return a->rank == b->rank && shape_equal(a, &like);
}

static int cat_build(struct build *build, const struct job_layer *layer, struct value *const *in,
                     int n_in, struct value **ret_out, struct err *err)
{
    char first[SHAPE_TEXT], other[SHAPE_TEXT];
    struct shape shape = in[0]->shape;
    struct cat_attr attr = {0};
    int dim, rc = dim_resolve(build, layer, &shape, &dim, err);
    if (rc != 0)
        return rc;
    shape.dim[dim] = 0;
    for (int i = 0; i < n_in; i++) {
        if (!fit(&in[0]->shape, &in[i]->shape, dim))
            return build_shape_error(build, layer, err,
                                     "it takes inputs of one shape but for dim %" PRId64
                                     ", but got %s and %s",
                                     layer->dim.dim, build_shape_text(&in[0]->shape, first),
                                     build_shape_text(&in[i]->shape, other));
        attr.part[i] = (struct slice_attr){.dim = dim, .begin = shape.dim[dim]};
        shape.dim[dim] += in[i]->shape.dim[dim];
    }
    struct node *node = build_node(build, "cat", PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    for (int i = 0; i < n_in; i++)
        build_in(node, in[i]);
    *ret_out = build_out(build, node, shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

static int cat_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                    struct value **in_grad, struct err *err)
{
    const struct cat_attr *attr = node->attr;
    for (int i = 0; i < node->n_in; i++) {
        if (!node->in[i]->needs_grad)
            continue;
        struct node *grad = build_grad_node(build, "slice", PHASE_INPUT_GRAD, node, err);
        if (grad == NULL)
            return err->code;
        grad->attr = &attr->part[i];
        build_in(grad, out_grad[0]);
        in_grad[i] = build_out(build, grad, node->in[i]->shape, DTYPE_F32, err);
        if (in_grad[i] == NULL)
            return err->code;
    }
    return 0;
}

const struct op_def op_cat = {
    .name = "cat", .build = cat_build, .grad = cat_grad, .low = {LOW_IF_ALL, LOW_EVERY, 1}};
const struct op_def op_slice = {.name = "slice", .low = {LOW_AS_FIRST, 1, 1}};
