/* max_pool2d.c: torch.nn.MaxPool2d on [N, C, H, W]. */
#include "engine/ops/attr.h"
#include "engine/ops/grad.h"
#include "engine/ops/registry.h"
#include "engine/ops/window.h"

/* Fills the attributes and the output's size of dimension i. */
static int pool_dimension(const struct build *build, const struct job_layer *layer,
                          const struct shape *input, int i, struct max_pool2d_attr *attr,
                          int64_t *ret_size, struct err *err)
{
    const struct layer_maxpool2d *args = &layer->maxpool2d;
    const struct window window = {args->kernel_size[i], args->stride[i], args->padding[i],
                                  args->dilation[i]};
    int64_t size = input->dim[2 + i];
    int rc = window_check(build, layer, input, i, &window, err);
    if (rc != 0)
        return rc;
    *ret_size = args->ceil_mode ? window_output_ceil(&window, size) : window_output(&window, size);
    attr->kernel_size[i] = window.kernel_size;
    attr->stride[i] = window.stride;
    attr->padding[i] = window.padding;
    attr->dilation[i] = window.dilation;
    attr->padding_end[i] = window_padding_end(&window, size, *ret_size);
    return 0;
}

static int max_pool2d_build(struct build *build, const struct job_layer *layer,
                            struct value *const *in, int n_in, struct value **ret_out,
                            struct err *err)
{
    (void)n_in;
    struct max_pool2d_attr attr = {0};
    struct shape shape = in[0]->shape;
    char text[SHAPE_TEXT];
    if (shape.rank != 4)
        return build_shape_error(build, layer, err, "it takes [N, C, H, W], but its input is %s",
                                 build_shape_text(&shape, text));
    int rc = 0;
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = pool_dimension(build, layer, &in[0]->shape, i, &attr, &shape.dim[2 + i], err);
    if (rc != 0)
        return rc;
    struct node *node = build_node(build, "max_pool2d", PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, in[0]);
    *ret_out = build_out(build, node, shape, DTYPE_F32, err);
    if (*ret_out == NULL)
        return err->code;
    /* Which element was the largest: what only the gradient reads. */
    if (in[0]->needs_grad && build_out(build, node, shape, DTYPE_U8, err) == NULL)
        return err->code;
    return 0;
}

static int max_pool2d_grad(struct build *build, const struct node *node,
                           struct value *const *out_grad, struct value **in_grad, struct err *err)
{
    return grad_unary(build, node, "max_pool2d_grad", out_grad[0], node->out[1], in_grad, err);
}

const struct op_def op_max_pool2d = {.name = "max_pool2d",
                                     .build = max_pool2d_build,
                                     .grad = max_pool2d_grad,
                                     .low = {LOW_AS_FIRST, 1, 1}};
const struct op_def op_max_pool2d_grad = {.name = "max_pool2d_grad", .low = {LOW_AS_FIRST, 1, 1}};
