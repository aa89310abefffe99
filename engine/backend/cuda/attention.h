/* attention.h: the kernels of attention.cu: what stands between the products of one head, of all
 * samples. As launchers.h.
 */
#ifndef ENGINE_BACKEND_CUDA_ATTENTION_H
#define ENGINE_BACKEND_CUDA_ATTENTION_H

#include "engine/backend/cuda/launchers.h"

#ifdef __cplusplus
extern "C" {
#endif

struct attention_launch {
    int64_t samples, steps, heads, head; /* `head`: the one at hand */
    bool causal;
    uint32_t layer_key[2], threshold; /* as dropout_launch's; threshold 0: none */
    float kept, scale;
};

/* products F32 [samples, steps, steps]: q kᵀ scaled → weights, masked, of that type (F32: they may
 * be the products); lse [samples, heads, steps], or NULL: not wanted. */
cudaError_t launch_attention_softmax(bool bf16, const struct attention_launch *attention,
                                     const float *products, void *weights, float *lse,
                                     const struct device_step *step, cudaStream_t stream);
/* products as before, grads: gy vᵀ → the masked weights, and the gradient of q kᵀ (F32: they may be
 * the products and the grads). */
cudaError_t launch_attention_grad(bool bf16, const struct attention_launch *attention,
                                  const float *products, const float *grads, const float *lse,
                                  void *weights, void *product_grads,
                                  const struct device_step *step, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
