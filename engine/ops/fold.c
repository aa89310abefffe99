#include "engine/ops/fold.h"

int fold_build(struct build *build, const char *op, const struct job_layer *layer,
               struct value *const *in, int n_in, struct value **ret_out, struct err *err)
{
    char first[SHAPE_TEXT], other[SHAPE_TEXT];
    for (int i = 1; i < n_in; i++)
        if (!shape_equal(&in[0]->shape, &in[i]->shape))
            return build_shape_error(
                build, layer, err, "it takes inputs of one shape, but got %s and %s",
                build_shape_text(&in[0]->shape, first), build_shape_text(&in[i]->shape, other));
    struct node *node = build_node(build, op, PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    for (int i = 0; i < n_in; i++)
        build_in(node, in[i]);
    *ret_out = build_out(build, node, in[0]->shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}
