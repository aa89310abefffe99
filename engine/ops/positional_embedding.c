/* positional_embedding.c: a learned vector for each step, added to [N, T, E]: what a decoder does
 * with a torch.nn.Embedding of the positions 0 … T - 1. */
#include <inttypes.h>

#include "engine/ops/grad.h"
#include "engine/ops/registry.h"

static int positional_build(struct build *build, const struct job_layer *layer,
                            struct value *const *in, int n_in, struct value **ret_out,
                            struct err *err)
{
    (void)n_in;
    const struct init_rule init = {.kind = INIT_NORMAL, .bound = 1};
    const struct shape *shape = &in[0]->shape;
    int64_t rows = layer->positionalembedding.num_embeddings;
    char text[SHAPE_TEXT];
    if (shape->rank != 3)
        return build_shape_error(build, layer, err, "it takes [N, T, E], but its input is %s",
                                 build_shape_text(shape, text));
    if (shape->dim[1] > rows)
        return build_shape_error(build, layer, err,
                                 "num_embeddings is %" PRId64 ", but its input %s has %" PRId64
                                 " steps",
                                 rows, build_shape_text(shape, text), shape->dim[1]);
    struct value *weight =
        build_parameter(build, layer, "weight", SHAPE(rows, shape->dim[2]), init, err);
    if (weight == NULL)
        return err->code;
    struct node *node = build_node(build, "positional_embedding", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    build_in(node, weight);
    *ret_out = build_out(build, node, *shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

/* The input's gradient is that of the sum itself. */
static int positional_grad(struct build *build, const struct node *node,
                           struct value *const *out_grad, struct value **in_grad, struct err *err)
{
    in_grad[0] = node->in[0]->needs_grad ? out_grad[0] : NULL;
    if (!node->in[1]->needs_grad)
        return 0;
    struct node *grad =
        build_grad_node(build, "positional_embedding_weight_grad", PHASE_WEIGHT_GRAD, node, err);
    if (grad == NULL)
        return err->code;
    build_in(grad, out_grad[0]);
    struct value *gradient = build_gradient(build, node->in[1], err);
    if (gradient == NULL)
        return err->code;
    build_out_value(grad, gradient);
    return 0;
}

const struct op_def op_positional_embedding = {
    .name = "positional_embedding", .build = positional_build, .grad = positional_grad};
const struct op_def op_positional_embedding_weight_grad = {.name =
                                                               "positional_embedding_weight_grad"};
