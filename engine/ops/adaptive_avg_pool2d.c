/* adaptive_avg_pool2d.c: torch.nn.AdaptiveAvgPool2d on [N, C, H, W]. */
#include "engine/ops/grad.h"
#include "engine/ops/registry.h"

static int pool_build(struct build *build, const struct job_layer *layer, struct value *const *in,
                      int n_in, struct value **ret_out, struct err *err)
{
    (void)n_in;
    const struct layer_adaptiveavgpool2d *args = &layer->adaptiveavgpool2d;
    struct shape shape = in[0]->shape;
    char text[SHAPE_TEXT];
    if (shape.rank != 4)
        return build_shape_error(build, layer, err, "it takes [N, C, H, W], but its input is %s",
                                 build_shape_text(&shape, text));
    struct node *node = build_node(build, "adaptive_avg_pool2d", PHASE_FORWARD, NULL, 0, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    shape.dim[2] = args->output_size[0];
    shape.dim[3] = args->output_size[1];
    *ret_out = build_out(build, node, shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

static int pool_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                     struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "adaptive_avg_pool2d_grad", out_grad[0], NULL, in_grad, err);
}

const struct op_def op_adaptive_avg_pool2d = {.name = "adaptive_avg_pool2d",
                                              .build = pool_build,
                                              .grad = pool_grad,
                                              .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_adaptive_avg_pool2d_grad = {.name = "adaptive_avg_pool2d_grad",
                                                   .low = {LOW_AS_FIRST, 1, 1}};
