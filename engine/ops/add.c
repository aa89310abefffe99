/* add.c: the sum of tensors of one shape: residual connections, and gradients of a value that
 * several layers read. */
#include "engine/ops/fold.h"
#include "engine/ops/registry.h"

static int add_build(struct build *build, const struct job_layer *layer, struct value *const *in,
                     int n_in, struct value **ret_out, struct err *err)
{
    return fold_build(build, "add", layer, in, n_in, ret_out, err);
}

/* The gradient of each input is that of the sum itself. */
static int add_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                    struct value **in_grad, struct err *err)
{
    (void)build;
    (void)err;
    for (int i = 0; i < node->n_in; i++)
        in_grad[i] = node->in[i]->needs_grad ? out_grad[0] : NULL;
    return 0;
}

const struct op_def op_add = {
    .name = "add", .build = add_build, .grad = add_grad, .low = {LOW_IF_ALL, LOW_EVERY, 1}};
