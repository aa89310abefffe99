/* conv2d.c: torch.nn.Conv2d on [N, C, H, W]. */
#include <inttypes.h>
#include <math.h>

#include "engine/ops/attr.h"
#include "engine/ops/grad.h"
#include "engine/ops/layer_weights.h"
#include "engine/ops/registry.h"
#include "engine/ops/window.h"

static int check_channels(const struct build *build, const struct job_layer *layer,
                          const struct shape *input, struct err *err)
{
    const struct layer_conv2d *args = &layer->conv2d;
    int64_t channels = input->rank == 4 ? input->dim[1] : 0;
    char text[SHAPE_TEXT];
    build_shape_text(input, text);
    if (input->rank != 4)
        return build_shape_error(build, layer, err, "it takes [N, C, H, W], but its input is %s",
                                 text);
    if (args->in_channels != 0 && args->in_channels != channels)
        return build_shape_error(build, layer, err,
                                 "in_channels is %" PRId64 ", but its input %s has %" PRId64,
                                 args->in_channels, text, channels);
    if (channels % args->groups != 0)
        return build_shape_error(build, layer, err,
                                 "the %" PRId64 " channels of its input %s cannot be parted in "
                                 "%" PRId64 " groups",
                                 channels, text, args->groups);
    return 0;
}

/* Before the first element. Behind the last one "same" has one more where the sum is odd, as in
 * PyTorch: kernels see it by the output's size. */
static int64_t padding_begin(const struct layer_conv2d *args, int i)
{
    bool same = args->padding[i] == PADDING_SAME;
    return same ? args->dilation[i] * (args->kernel_size[i] - 1) / 2 : args->padding[i];
}

static int build_forward(struct build *build, const struct job_layer *layer, struct value *input,
                         const struct layer_weights *weights, const struct shape *output,
                         struct value **ret_out, struct err *err)
{
    const struct layer_conv2d *args = &layer->conv2d;
    const struct conv2d_attr attr = {.stride = {args->stride[0], args->stride[1]},
                                     .padding = {padding_begin(args, 0), padding_begin(args, 1)},
                                     .dilation = {args->dilation[0], args->dilation[1]},
                                     .groups = args->groups};
    struct node *node = build_node(build, "conv2d", PHASE_FORWARD, &attr, sizeof attr, err);
    if (node == NULL)
        return err->code;
    build_in(node, input);
    build_in(node, weights->weight);
    build_in(node, weights->bias);
    *ret_out = build_out(build, node, *output, DTYPE_F32, err);
    return *ret_out == NULL ? err->code : 0;
}

static int conv2d_build(struct build *build, const struct job_layer *layer, struct value *const *in,
                        int n_in, struct value **ret_out, struct err *err)
{
    (void)n_in;
    const struct layer_conv2d *args = &layer->conv2d;
    struct shape output = in[0]->shape;
    int rc = check_channels(build, layer, &in[0]->shape, err);
    for (int i = 0; rc == 0 && i < 2; i++) {
        if (args->padding[i] == PADDING_SAME)
            continue;
        const struct window window = {args->kernel_size[i], args->stride[i], args->padding[i],
                                      args->dilation[i]};
        rc = window_check(build, layer, &in[0]->shape, i, &window, err);
        if (rc == 0)
            output.dim[2 + i] = window_output(&window, in[0]->shape.dim[2 + i]);
    }
    if (rc != 0)
        return rc;
    output.dim[1] = args->out_channels;
    const struct shape shape = SHAPE(args->out_channels, in[0]->shape.dim[1] / args->groups,
                                     args->kernel_size[0], args->kernel_size[1]);
    double fan_in = (double)shape.dim[1] * (double)shape.dim[2] * (double)shape.dim[3];
    const struct init_rule init = {.kind = INIT_UNIFORM, .bound = 1.0 / sqrt(fan_in)};
    struct layer_weights weights;
    rc = layer_weights_build(build, layer, shape, init, args->bias, &weights, err);
    return rc != 0 ? rc : build_forward(build, layer, in[0], &weights, &output, ret_out, err);
}

static int conv2d_grad(struct build *build, const struct node *node, struct value *const *out_grad,
                       struct value **in_grad, struct err *err)
{
    int rc = grad_weight(build, node, "conv2d_weight_grad", out_grad[0], in_grad, err);
    return rc != 0 ? rc : grad_input(build, node, "conv2d_input_grad", out_grad[0], in_grad, err);
}

/* Each element of y [N, O, OH, OW] takes a product with one filter of w [O, C/groups, kh, kw]. */
static double product_flops(const struct shape *weight, const struct shape *y)
{
    return 2.0 * (double)shape_count(y) * (double)(shape_count(weight) / weight->dim[0]);
}

static double conv2d_flops(const struct node *node)
{
    return product_flops(&node->in[1]->shape, &node->out[0]->shape);
}

static double input_grad_flops(const struct node *node)
{
    return product_flops(&node->in[1]->shape, &node->in[0]->shape);
}

static double weight_grad_flops(const struct node *node)
{
    return product_flops(&node->out[0]->shape, &node->in[1]->shape);
}

const struct op_def op_conv2d = {.name = "conv2d",
                                 .build = conv2d_build,
                                 .grad = conv2d_grad,
                                 .flops = conv2d_flops,
                                 .low = {LOW_ALWAYS, 3, 1}};
const struct op_def op_conv2d_input_grad = {
    .name = "conv2d_input_grad", .flops = input_grad_flops, .low = {LOW_ALWAYS, 3, 1}};
const struct op_def op_conv2d_weight_grad = {
    .name = "conv2d_weight_grad", .flops = weight_grad_flops, .low = {LOW_ALWAYS, 3, 0}};
