/* avg_pool2d.c: torch.nn.AvgPool2d on [N, C, H, W]. */
#include "engine/ops/attr.h"
#include "engine/ops/grad.h"
#include "engine/ops/registry.h"
#include "engine/ops/window.h"

static int avg_pool2d_build(struct build *build, const struct job_layer *layer,
                            struct value *const *in, int n_in, struct value **ret_out,
                            struct err *err)
{
    (void)n_in;
    const struct layer_avgpool2d *args = &layer->avgpool2d;
    struct avg_pool2d_attr attr = {.count_include_pad = args->count_include_pad,
                                   .divisor_override = args->divisor_override};
    struct shape shape = in[0]->shape;
    char text[SHAPE_TEXT];
    if (shape.rank != 4)
        return build_shape_error(build, layer, err, "it takes [N, C, H, W], but its input is %s",
                                 build_shape_text(&shape, text));
    for (int i = 0; i < 2; i++) {
        const struct window window = {args->kernel_size[i], args->stride[i], args->padding[i], 1};
        int64_t size = in[0]->shape.dim[2 + i];
        int rc = window_check(build, layer, &in[0]->shape, i, &window, err);
        if (rc != 0)
            return rc;
        shape.dim[2 + i] =
            args->ceil_mode ? window_output_ceil(&window, size) : window_output(&window, size);
        attr.kernel_size[i] = window.kernel_size;
        attr.stride[i] = window.stride;
        attr.padding[i] = window.padding;
    }
    struct node *node = build_node(build, "avg_pool2d", PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    *ret_out = build_out(build, node, shape, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

static int avg_pool2d_grad(struct build *build, const struct node *node,
                           struct value *const *out_grad, struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "avg_pool2d_grad", out_grad[0], NULL, in_grad, err);
}

const struct op_def op_avg_pool2d = {.name = "avg_pool2d",
                                     .build = avg_pool2d_build,
                                     .grad = avg_pool2d_grad,
                                     .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_avg_pool2d_grad = {.name = "avg_pool2d_grad", .low = {LOW_AS_FIRST, 1, 1}};
