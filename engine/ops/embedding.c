/* embedding.c: torch.nn.Embedding: a row of the weight for each integer of the input. */
#include <inttypes.h>

#include "engine/ops/attr.h"
#include "engine/ops/grad.h"
#include "engine/ops/layer_weights.h"
#include "engine/ops/registry.h"

static int embedding_build(struct build *build, const struct job_layer *layer,
                           struct value *const *in, int n_in, struct value **ret_out,
                           struct err *err)
{
    (void)n_in;
    const struct layer_embedding *args = &layer->embedding;
    int64_t rows = args->num_embeddings, padding = args->padding_idx;
    if (padding != INT64_MIN && padding < 0)
        padding += rows;
    const struct embedding_attr attr = {.padding_row = padding == INT64_MIN ? -1 : padding};
    const struct init_rule init = {.kind = INIT_NORMAL, .bound = 1};
    struct shape shape = in[0]->shape;
    char text[SHAPE_TEXT];
    if (shape.rank == LIMIT_RANK)
        return build_shape_error(build, layer, err, "its input %s has no room for a dimension",
                                 build_shape_text(&shape, text));
    struct layer_weights weights;
    int rc = layer_weights_build(build, layer, SHAPE(rows, args->embedding_dim), init, false,
                                 &weights, err);
    if (rc != 0)
        return rc;
    if (attr.padding_row >= 0)
        build_zero_row(build, weights.parameter, attr.padding_row);
    build_lookup(build, in[0], rows);
    struct node *node = build_node(build, "embedding", PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    build_in(node, weights.weight);
    shape.dim[shape.rank++] = args->embedding_dim;
    *ret_out = build_out(build, node, shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

static int embedding_grad(struct build *build, const struct node *node,
                          struct value *const *out_grad, struct value **in_grad, struct err *err)
{
    return grad_weight(build, node, "embedding_weight_grad", out_grad[0], in_grad, err);
}

const struct op_def op_embedding = {
    .name = "embedding", .build = embedding_build, .grad = embedding_grad, .integers = true};
const struct op_def op_embedding_weight_grad = {.name = "embedding_weight_grad"};
