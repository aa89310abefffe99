/* conv2d.c: conv2d and its gradients: torch.nn.Conv2d.
 *
 * In BF16 images lie with their channels last, as tensor cores want them; else as they come. The
 * weight is a variable and so plain: with channels last it is brought there in the scratch, and its
 * gradient back. cuDNN pads before and behind alike: where there is more behind, the image is
 * copied into a larger one. In BF16 cuDNN's weight gradient is BF16 as well, and widened.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/backend/cuda/channels.h"
#include "engine/backend/cuda/convolution.h"
#include "engine/backend/cuda/own.h"
#include "engine/ops/attr.h"

/* Where what a kernel needs beside its operands lies in the scratch; sizes of 0: nothing there. */
struct room {
    size_t image, weight, grad, sums, workspace, bytes;
    size_t image_bytes, weight_bytes, grad_bytes, sums_bytes;
};

struct conv2d {
    struct own own;
    struct convolution convolution;
    struct convolution_shape shape;
    struct room room;
};

/* Which operands of a node are the image and the weight. */
struct operands {
    const struct value *x, *w, *y;
};

static int64_t extra_padding(const struct conv2d_attr *attr, const struct operands *of, int i)
{
    int64_t extent = attr->dilation[i] * (of->w->shape.dim[2 + i] - 1) + 1;
    int64_t end = (of->y->shape.dim[2 + i] - 1) * attr->stride[i] + extent -
                  of->x->shape.dim[2 + i] - attr->padding[i];
    return end > attr->padding[i] ? end - attr->padding[i] : 0;
}

/* As cuDNN is to compute it. */
static struct convolution_shape shape_of(const struct node *node, const struct operands *of,
                                         bool channels_last)
{
    const struct conv2d_attr *attr = node->attr;
    struct convolution_shape shape = {
        .x = of->x->shape,
        .w = of->w->shape,
        .y = of->y->shape,
        .dtype = of->y->dtype,
        .channels_last = channels_last,
        .groups = attr->groups,
    };
    for (int i = 0; i < 2; i++) {
        shape.stride[i] = attr->stride[i];
        shape.padding[i] = attr->padding[i];
        shape.dilation[i] = attr->dilation[i];
        shape.x.dim[2 + i] += extra_padding(attr, of, i);
    }
    return shape;
}

/* One behind the other, each on a line of its own. */
static size_t place(size_t *at, size_t bytes)
{
    size_t here = *at;
    *at += (bytes + 255) / 256 * 256;
    return here;
}

static struct room room_of(const struct convolution_shape *shape, const struct operands *of,
                           enum direction direction, bool bias)
{
    size_t element = dtype_size(shape->dtype);
    size_t weight = (size_t)shape_count(&shape->w) * element;
    bool grad = direction == DIRECTION_WEIGHT_GRAD, forward = direction == DIRECTION_FORWARD;
    struct room room = {0};
    if (!shape_equal(&shape->x, &of->x->shape))
        room.image_bytes = (size_t)shape_count(&shape->x) * element;
    if (shape->channels_last)
        room.weight_bytes = weight;
    if (grad && shape->dtype == DTYPE_BF16)
        room.grad_bytes = weight;
    if (bias && !forward) {
        const struct image y = {shape->y.dim[0], shape->y.dim[1], shape->y.dim[2], shape->y.dim[3],
                                shape->channels_last};
        room.sums_bytes = (size_t)channel_scratch(&y) * sizeof(double);
    }
    room.image = place(&room.bytes, room.image_bytes);
    room.weight = place(&room.bytes, room.weight_bytes);
    room.grad = place(&room.bytes, room.grad_bytes);
    room.sums = place(&room.bytes, room.sums_bytes);
    room.workspace = place(&room.bytes, convolution_workspace(shape));
    return room;
}

static struct operands operands_of(const struct node *node, enum direction direction)
{
    const struct operands of[] = {
        [DIRECTION_FORWARD] = {node->in[0], node->in[1], node->out[0]},
        [DIRECTION_INPUT_GRAD] = {node->out[0], node->in[1], node->in[0]},
        [DIRECTION_WEIGHT_GRAD] = {node->in[0], node->out[0], node->in[1]},
    };
    return of[direction];
}

static bool has_bias(const struct node *node, enum direction direction)
{
    return direction == DIRECTION_FORWARD ? own_in(node, 2) != NULL : own_out(node, 1) != NULL;
}

/* Images lie alike; the weight, or its gradient, and the bias are plain. */
static int convolution_query(const struct node *node, enum direction direction,
                             const struct layout *const *in, struct arena *arena,
                             struct kernel_choice *ret_choice, struct err *err)
{
    struct operands of = operands_of(node, direction);
    bool channels_last = of.y->dtype == DTYPE_BF16 || in[0]->channels_last;
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    const struct layout *x = cuda_layout_image(arena, &of.x->shape, of.x->dtype, channels_last);
    const struct layout *y = cuda_layout_image(arena, &of.y->shape, of.y->dtype, channels_last);
    if (!x || !y)
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    ret_choice->in[0] = direction == DIRECTION_INPUT_GRAD ? y : x;
    if (direction == DIRECTION_WEIGHT_GRAD)
        ret_choice->in[1] = y;
    else
        ret_choice->out[0] = direction == DIRECTION_FORWARD ? y : x;
    const struct convolution_shape shape = shape_of(node, &of, channels_last);
    ret_choice->scratch_bytes = room_of(&shape, &of, direction, has_bias(node, direction)).bytes;
    strcpy(ret_choice->impl, "cudnn");
    return 0;
}

static void conv2d_destroy(void *state)
{
    struct conv2d *conv = state;
    if (conv)
        convolution_done(&conv->convolution);
    free(conv);
}

static int convolution_create(struct device *device, const struct node *node,
                              enum direction direction, const struct kernel_choice *choice,
                              void **ret_state, struct err *err)
{
    struct operands of = operands_of(node, direction);
    struct conv2d *conv = calloc(1, sizeof *conv);
    if (!conv)
        return err_set(err, ERR_NOMEM, "no memory for a kernel");
    conv->own = (struct own){device, node, choice};
    conv->shape = shape_of(node, &of, choice->in[0]->channels_last);
    conv->room = room_of(&conv->shape, &of, direction, has_bias(node, direction));
    int rc = convolution_init(&conv->convolution, device, direction, &conv->shape, err);
    if (rc)
        conv2d_destroy(conv);
    else
        *ret_state = conv;
    return rc;
}

/* The image between its own size and the padded one. */
static int resize(const struct conv2d *conv, const struct shape *from, const struct shape *to,
                  const void *image, void *ret_image, struct err *err)
{
    bool last = conv->shape.channels_last;
    const struct resize_launch launch = {
        .planes = last ? from->dim[0] : from->dim[0] * from->dim[1],
        .inner = last ? from->dim[1] : 1,
        .from = {from->dim[2], from->dim[3]},
        .to = {to->dim[2], to->dim[3]},
    };
    return own_launched(launch_resize(conv->shape.dtype == DTYPE_BF16, image, ret_image, &launch,
                                      conv->own.device->compute),
                        err);
}

/* The padded image in the scratch, or x itself. */
static int pad(const struct conv2d *conv, const struct shape *shape, void *x, char *scratch,
               void **ret_x, struct err *err)
{
    *ret_x = conv->room.image_bytes > 0 ? scratch + conv->room.image : x;
    return *ret_x == x ? 0 : resize(conv, shape, &conv->shape.x, x, *ret_x, err);
}

/* A weight [O, C / groups, kh, kw] with its channels last, or back. */
static int turn_weight(const struct conv2d *conv, bool back, const void *from, void *to,
                       struct err *err)
{
    const struct shape *w = &conv->shape.w;
    int64_t pixels = w->dim[2] * w->dim[3], rows = back ? pixels : w->dim[1];
    return own_launched(launch_transpose(conv->shape.dtype == DTYPE_BF16, from, to, w->dim[0], rows,
                                         w->dim[1] * pixels / rows, conv->own.device->compute),
                        err);
}

static int take_weight(const struct conv2d *conv, void *w, char *scratch, void **ret_w,
                       struct err *err)
{
    *ret_w = conv->room.weight_bytes > 0 ? scratch + conv->room.weight : w;
    return *ret_w == w ? 0 : turn_weight(conv, false, w, *ret_w, err);
}

static int conv2d_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct conv2d *conv = state;
    const struct own *own = &conv->own;
    struct convolution_memory memory = {.y = args->out[0],
                                        .workspace = (char *)args->scratch + conv->room.workspace};
    int rc = pad(conv, &own->node->in[0]->shape, args->in[0], args->scratch, &memory.x, err);
    if (rc == 0)
        rc = take_weight(conv, args->in[1], args->scratch, &memory.w, err);
    if (rc == 0)
        rc = convolution_run(&conv->convolution, &memory, err);
    if (rc || !own_in(own->node, 2))
        return rc;
    const struct image y = own_image(own->choice->out[0]);
    return own_launched(launch_add_bias(conv->shape.dtype == DTYPE_BF16, &y, args->in[2],
                                        args->out[0], own->device->compute),
                        err);
}

static int conv2d_input_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct conv2d *conv = state;
    bool padded = conv->room.image_bytes > 0;
    char *scratch = args->scratch;
    struct convolution_memory memory = {
        .x = padded ? scratch + conv->room.image : args->out[0],
        .y = args->in[0],
        .workspace = scratch + conv->room.workspace,
    };
    int rc = take_weight(conv, args->in[1], scratch, &memory.w, err);
    if (rc == 0)
        rc = convolution_run(&conv->convolution, &memory, err);
    return rc == 0 && padded ? resize(conv, &conv->shape.x, &conv->own.node->out[0]->shape,
                                      memory.x, args->out[0], err)
                             : rc;
}

/* What cuDNN left, plain and in F32. */
static int leave_weight_grad(const struct conv2d *conv, void *made, char *scratch, float *gw,
                             struct err *err)
{
    void *plain = conv->room.grad_bytes > 0 ? scratch + conv->room.grad : (void *)gw;
    int rc = conv->room.weight_bytes > 0 ? turn_weight(conv, true, made, plain, err) : 0;
    if (rc || conv->room.grad_bytes == 0)
        return rc;
    return own_launched(
        launch_cast(false, plain, gw, shape_count(&conv->shape.w), conv->own.device->compute), err);
}

static int conv2d_weight_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct conv2d *conv = state;
    const struct own *own = &conv->own;
    char *scratch = args->scratch;
    struct convolution_memory memory = {
        .w = conv->room.weight_bytes > 0 ? scratch + conv->room.weight : args->out[0],
        .y = args->in[1],
        .workspace = scratch + conv->room.workspace,
    };
    int rc = pad(conv, &own->node->in[0]->shape, args->in[0], scratch, &memory.x, err);
    if (rc == 0)
        rc = convolution_run(&conv->convolution, &memory, err);
    if (rc == 0)
        rc = leave_weight_grad(conv, memory.w, scratch, args->out[0], err);
    if (rc || !own_out(own->node, 1))
        return rc;
    const struct image y = own_image(own->choice->in[1]);
    return own_launched(launch_channel_sums(conv->shape.dtype == DTYPE_BF16, &y, args->in[1],
                                            args->out[1], (double *)(scratch + conv->room.sums),
                                            own->device->compute),
                        err);
}

/* A kernel's row, in its direction. */
#define ROW(name, direction)                                                                       \
    static int name##_query(const struct node *node, const struct layout *const *in,               \
                            struct arena *arena, struct kernel_choice *ret_choice,                 \
                            struct err *err)                                                       \
    {                                                                                              \
        return convolution_query(node, direction, in, arena, ret_choice, err);                     \
    }                                                                                              \
    static int name##_create(struct device *device, const struct node *node,                       \
                             const struct kernel_choice *choice, void **ret_state,                 \
                             struct err *err)                                                      \
    {                                                                                              \
        return convolution_create(device, node, direction, choice, ret_state, err);                \
    }                                                                                              \
    const struct kernel kernel_##name = {#name, name##_query, name##_create, name##_run,           \
                                         conv2d_destroy}

ROW(conv2d, DIRECTION_FORWARD);
ROW(conv2d_input_grad, DIRECTION_INPUT_GRAD);
ROW(conv2d_weight_grad, DIRECTION_WEIGHT_GRAD);
