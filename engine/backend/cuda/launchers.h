/* launchers.h: our own kernels, as C calls that enqueue them. Private to engine/backend/cuda.
 *
 * Every pointer is the device's unless it says otherwise; `bf16`: tensors are BF16, else F32; n:
 * elements. All are PURE but for the stream. They return what the launch answered.
 */
#ifndef ENGINE_BACKEND_CUDA_LAUNCHERS_H
#define ENGINE_BACKEND_CUDA_LAUNCHERS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/backend/cuda/step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* step.cu. `value`: the host's, copied by the call. */
cudaError_t launch_set_step(struct device_step *step, const struct device_step *value,
                            cudaStream_t stream);

/* elementwise.cu. Outputs may lie on inputs. */
enum activation {
    ACTIVATION_RELU,
    ACTIVATION_GELU,
    ACTIVATION_GELU_TANH,
    ACTIVATION_SILU,
    ACTIVATION_SIGMOID,
    ACTIVATION_TANH,
    ACTIVATION_COUNT
};
cudaError_t launch_activation(enum activation activation, bool bf16, const void *x, void *y,
                              int64_t n, cudaStream_t stream);
/* saved: y of relu, sigmoid, tanh; x of the others. */
cudaError_t launch_activation_grad(enum activation activation, bool bf16, const void *saved,
                                   const void *gy, void *gx, int64_t n, cudaStream_t stream);
enum { FOLD_MAX = 10 };
/* in[0] + in[1] + …, or their product, from left to right, each result rounded; `in` is the
 * host's. */
cudaError_t launch_fold(bool multiply, bool bf16, const void *const *in, int n_in, void *out,
                        int64_t n, cudaStream_t stream);
/* dropout.cu: the mask is base/rng.h's function of the address of an element. */
struct dropout_launch {
    uint32_t layer_key[2];  /* of (seed, RNG_DROPOUT, layer) */
    uint32_t threshold;     /* p in units of rng_uniform's 2^-24, rounded up */
    float factor;           /* of what is kept */
    int64_t samples, count; /* elements of a sample */
    int64_t channels;       /* where they lie last; 0: the order is row-major */
};
cudaError_t launch_dropout(bool bf16, const void *x, void *y, const struct dropout_launch *dropout,
                           const struct device_step *step, cudaStream_t stream);

/* convert.cu */
cudaError_t launch_cast(bool to_bf16, const void *from, void *to, int64_t n, cudaStream_t stream);
/* Planes of [height, width, inner] elements to planes of another height and width: what is beyond
 * is cut off, or zero. */
struct resize_launch {
    int64_t planes, inner, from[2], to[2]; /* heights and widths */
};
cudaError_t launch_resize(bool bf16, const void *from, void *to, const struct resize_launch *resize,
                          cudaStream_t stream);
/* [batch, rows, columns] -> [batch, columns, rows]. */
cudaError_t launch_transpose(bool bf16, const void *from, void *to, int64_t batch, int64_t rows,
                             int64_t columns, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
