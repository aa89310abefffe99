#include "engine/ops/window.h"

#include <inttypes.h>

/* From the window's first element to behind its last. */
static int64_t extent(const struct window *window)
{
    return window->dilation * (window->kernel_size - 1) + 1;
}

int64_t window_output(const struct window *window, int64_t size)
{
    return (size + 2 * window->padding - extent(window)) / window->stride + 1;
}

int64_t window_output_ceil(const struct window *window, int64_t size)
{
    int64_t room = size + 2 * window->padding - extent(window);
    int64_t output = (room + window->stride - 1) / window->stride + 1;
    bool begins_behind = (output - 1) * window->stride >= size + window->padding;
    return begins_behind ? output - 1 : output;
}

int64_t window_padding_end(const struct window *window, int64_t size, int64_t output)
{
    int64_t end = (output - 1) * window->stride + extent(window) - size - window->padding;
    return end > window->padding ? end : window->padding;
}

/* The document's numbers are bounded only by int64. */
static bool fits(const struct window *window, int64_t size)
{
    int64_t room, reach;
    return !__builtin_mul_overflow(window->padding, 2, &room) &&
           !__builtin_add_overflow(room, size, &room) &&
           !__builtin_mul_overflow(window->dilation, window->kernel_size - 1, &reach) &&
           reach < room;
}

int window_check(const struct build *build, const struct job_layer *layer,
                 const struct shape *input, int i, const struct window *window, struct err *err)
{
    static const char *const sides[] = {"height", "width"};
    int64_t size = input->dim[2 + i];
    char text[SHAPE_TEXT];
    if (fits(window, size))
        return 0;
    return build_shape_error(build, layer, err,
                             "kernel_size %" PRId64 " (dilation %" PRId64
                             ") is larger than its input %s, whose %s is "
                             "%" PRId64 " with padding %" PRId64 " on each side",
                             window->kernel_size, window->dilation, build_shape_text(input, text),
                             sides[i], size, window->padding);
}
