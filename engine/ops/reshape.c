/* reshape.c: another shape for the same elements: a view. torch.nn.Flatten is one. */
#include <inttypes.h>

#include "engine/ops/grad.h"
#include "engine/ops/registry.h"

static int flatten_shape(const struct build *build, const struct job_layer *layer,
                         const struct shape *input, struct shape *ret_shape, struct err *err)
{
    int64_t start = layer->flatten.start_dim, end = layer->flatten.end_dim;
    char text[SHAPE_TEXT];
    if (end < 0)
        end += input->rank;
    if (start < 1 || start > end || end >= input->rank)
        return build_shape_error(build, layer, err,
                                 "start_dim %" PRId64 ", end_dim %" PRId64
                                 " are no range of its input %s behind the batch dimension",
                                 layer->flatten.start_dim, layer->flatten.end_dim,
                                 build_shape_text(input, text));
    *ret_shape = (struct shape){.rank = input->rank - (int)(end - start)};
    for (int from = 0, to = 0; from < input->rank; from++) {
        bool joins = from > start && from <= end;
        to += from > 0 && !joins;
        ret_shape->dim[to] = input->dim[from] * (joins ? ret_shape->dim[to] : 1);
    }
    return 0;
}

static int flatten_build(struct build *build, const struct job_layer *layer,
                         struct value *const *in, int n_in, struct value **ret_out, struct err *err)
{
    (void)n_in;
    struct shape shape;
    int rc = flatten_shape(build, layer, &in[0]->shape, &shape, err);
    if (rc != 0)
        return rc;
    if (shape_equal(&shape, &in[0]->shape)) {
        *ret_out = in[0];
        return 0;
    }
    struct node *node = build_node(build, "reshape", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    *ret_out = build_out(build, node, shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

static int reshape_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                        struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "reshape", out_grad[0], NULL, in_grad, err);
}

const struct op_def op_reshape = {
    .name = "reshape", .build = flatten_build, .grad = reshape_grad, .view = true};
