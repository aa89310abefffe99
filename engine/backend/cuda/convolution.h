/* convolution.h: a convolution of cuDNN's in one of its three directions, with the algorithm that
 * suits it: one that adds in one order, within a workspace. */
#ifndef ENGINE_BACKEND_CUDA_CONVOLUTION_H
#define ENGINE_BACKEND_CUDA_CONVOLUTION_H

#include "engine/backend/cuda/cuda.h"

enum direction { DIRECTION_FORWARD, DIRECTION_INPUT_GRAD, DIRECTION_WEIGHT_GRAD };

struct convolution_shape {
    struct shape x, w, y; /* [N, C, H, W], [O, C / groups, kh, kw], [N, O, OH, OW] */
    enum dtype dtype;     /* of all three */
    bool channels_last;   /* all three */
    int64_t stride[2], padding[2], dilation[2], groups;
};

struct convolution {
    struct device *device;
    enum direction direction;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t desc;
    int algorithm; /* cuDNN's number, of the direction */
    size_t workspace_bytes;
};

/* The most workspace that such a convolution is given. PURE. */
size_t convolution_workspace(const struct convolution_shape *shape);

/* On failure convolution_done still is the caller's. Errors: ERR_DEVICE_FAILED, ERR_NOMEM. */
int convolution_init(struct convolution *convolution, struct device *device,
                     enum direction direction, const struct convolution_shape *shape,
                     struct err *err);
void convolution_done(struct convolution *convolution); /* zeroed ones too */

/* y of x and w, gx of gy and w, or gw of x and gy. */
struct convolution_memory {
    void *x, *w, *y, *workspace;
};
int convolution_run(const struct convolution *convolution, const struct convolution_memory *memory,
                    struct err *err);

#endif
