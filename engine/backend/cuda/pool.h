/* pool.h: the kernels of pool.cu: pooling of images, and its gradients: a thread an output, or an
 * input, which gathers what belongs to it. As launchers.h; x and y lie alike.
 */
#ifndef ENGINE_BACKEND_CUDA_POOL_H
#define ENGINE_BACKEND_CUDA_POOL_H

#include "engine/backend/cuda/image.h"
#include "engine/backend/cuda/launchers.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pool_launch {
    struct image x, y;
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    bool count_include_pad;   /* of averages */
    int64_t divisor_override; /* 0: none */
};

/* pixel: which pixel of its plane was the largest, -1: the window is empty; NULL: not wanted. */
cudaError_t launch_max_pool(bool bf16, const struct pool_launch *pool, const void *x, void *y,
                            int32_t *pixel, cudaStream_t stream);
cudaError_t launch_max_pool_grad(bool bf16, const struct pool_launch *pool, const void *gy,
                                 const int32_t *pixel, void *gx, cudaStream_t stream);
cudaError_t launch_avg_pool(bool bf16, const struct pool_launch *pool, const void *x, void *y,
                            cudaStream_t stream);
cudaError_t launch_avg_pool_grad(bool bf16, const struct pool_launch *pool, const void *gy,
                                 void *gx, cudaStream_t stream);
/* Of the images' sizes alone: AdaptiveAvgPool2d's bins. */
cudaError_t launch_adaptive_pool(bool bf16, const struct pool_launch *pool, const void *x, void *y,
                                 cudaStream_t stream);
cudaError_t launch_adaptive_pool_grad(bool bf16, const struct pool_launch *pool, const void *gy,
                                      void *gx, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
