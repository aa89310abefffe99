/* window.h: the arithmetic of windows that slide over one dimension (Conv2d, MaxPool2d), as
 * torch.nn's pages define it. Private to engine/ops. */
#ifndef ENGINE_OPS_WINDOW_H
#define ENGINE_OPS_WINDOW_H

#include "engine/graph/op.h"

struct window {
    int64_t kernel_size, stride, padding, dilation;
};

/* Windows over `size` elements that lie whole in the padded input. */
int64_t window_output(const struct window *window, int64_t size);
/* The same under ceil_mode: a last window may lie partly behind the padding, but not begin there.
 */
int64_t window_output_ceil(const struct window *window, int64_t size);
/* Padding behind the last element that `output` windows need; at least `padding`. */
int64_t window_padding_end(const struct window *window, int64_t size, int64_t output);
/* Refuses a window that is larger than the padded input; `i`: 0 the height, 1 the width of
 * [N, C, H, W]. */
int window_check(const struct build *build, const struct job_layer *layer,
                 const struct shape *input, int i, const struct window *window, struct err *err);

#endif
