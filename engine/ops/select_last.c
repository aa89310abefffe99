/* select_last.c: the last step of each sample of [N, T, …]; the last valid one where the value has
 * lengths. */
#include <string.h>

#include "engine/ops/grad.h"
#include "engine/ops/registry.h"

static int select_last_build(struct build *build, const struct job_layer *layer,
                             struct value *const *in, int n_in, struct value **ret_out,
                             struct err *err)
{
    (void)n_in;
    const struct shape *input = &in[0]->shape;
    struct shape shape = {.rank = input->rank - 1, .dim = {input->dim[0]}};
    char text[SHAPE_TEXT];
    if (input->rank < 3)
        return build_shape_error(build, layer, err, "it takes [N, T, E], but its input is %s",
                                 build_shape_text(input, text));
    memcpy(shape.dim + 1, input->dim + 2, sizeof input->dim[0] * (size_t)(input->rank - 2));
    struct node *node = build_node(build, "select_last", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    if (in[0]->lengths != NULL)
        build_in(node, in[0]->lengths);
    *ret_out = build_out(build, node, shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

static int select_last_grad(struct build *build, const struct node *node,
                            struct value *const *out_grad, struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "select_last_grad", out_grad[0], node->in[1], in_grad, err);
}

const struct op_def op_select_last = {.name = "select_last",
                                      .build = select_last_build,
                                      .grad = select_last_grad,
                                      .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_select_last_grad = {.name = "select_last_grad", .low = {LOW_AS_FIRST, 1, 1}};
