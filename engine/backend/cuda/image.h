/* image.h: a tensor of rank 4 or 2 as samples, channels and pixels, whichever lies last. In C and
 * in CUDA. */
#ifndef ENGINE_BACKEND_CUDA_IMAGE_H
#define ENGINE_BACKEND_CUDA_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

struct image {
    int64_t samples, channels, height, width;
    bool channels_last;
};

#endif
