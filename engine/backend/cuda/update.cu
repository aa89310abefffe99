/* update.cu: SGD, Adam, AdamW and RMSprop: one parameter in one pass over its memory, in PyTorch's
 * order of operations. */
#include "engine/backend/cuda/real.cuh"
#include "engine/backend/cuda/update.h"

namespace engine
{

__device__ inline float scale_of(const float *scale)
{
    return scale != nullptr ? *scale : 1;
}

/* What of an update is no tensor: pointers are arguments of their own, so that a launch shows all
 * that its kernel touches. */
struct SgdNumbers {
    float momentum, keep, weight_decay;
    bool nesterov;
};

__global__ void sgd_plain(float *w, const float *grads, const float *scales, float weight_decay,
                          int64_t n, const device_step *step)
{
    float lr = (float)step->lr, scale = scale_of(scales);
    for (int64_t i = thread_index(); i < n; i += n_threads())
        w[i] -= lr * (scale * grads[i] + weight_decay * w[i]);
}

/* The first step's buffer is the gradient itself, without dampening. */
__global__ void sgd_momentum(float *w, float *buffers, const float *grads, const float *scales,
                             SgdNumbers u, int64_t n, const device_step *step)
{
    float lr = (float)step->lr, scale = scale_of(scales);
    bool first = step->number == 1;
    float keep = first ? 1 : u.keep, momentum = first ? 0 : u.momentum;
    for (int64_t i = thread_index(); i < n; i += n_threads()) {
        float grad = scale * grads[i] + u.weight_decay * w[i];
        float buffer = momentum * buffers[i] + keep * grad;
        buffers[i] = buffer;
        w[i] -= lr * (u.nesterov ? grad + u.momentum * buffer : buffer);
    }
}

struct AdamNumbers {
    double beta1, beta2, eps, weight_decay;
    bool decoupled;
};

struct AdamStep {
    float keep; /* of w, by decoupled weight decay */
    float size;
    float correction; /* sqrt(1 - beta2^step) */
};

__device__ inline AdamStep adam_step(const AdamNumbers &a, const device_step *step)
{
    double number = (double)step->number;
    return {a.decoupled ? (float)(1 - step->lr * a.weight_decay) : 1,
            (float)(step->lr / (1 - pow(a.beta1, number))), (float)sqrt(1 - pow(a.beta2, number))};
}

/* amsgrad: the largest square so far, as torch.maximum: a NaN stays. */
__global__ void adam(float *w, float *averages, float *squares, float *largest_squares,
                     const float *grads, const float *scales, AdamNumbers a, int64_t n,
                     const device_step *step)
{
    __shared__ AdamStep shared;
    if (threadIdx.x == 0)
        shared = adam_step(a, step);
    __syncthreads();
    AdamStep now = shared;
    float scale = scale_of(scales), decay = a.decoupled ? 0 : (float)a.weight_decay;
    float beta1 = (float)a.beta1, beta2 = (float)a.beta2, eps = (float)a.eps;
    float rest1 = (float)(1 - a.beta1), rest2 = (float)(1 - a.beta2);
    for (int64_t i = thread_index(); i < n; i += n_threads()) {
        float grad = scale * grads[i] + decay * w[i];
        float average = averages[i] = beta1 * averages[i] + rest1 * grad;
        float square = squares[i] = beta2 * squares[i] + rest2 * grad * grad;
        if (largest_squares != nullptr) {
            float largest = largest_squares[i];
            square = largest_squares[i] = square <= largest ? largest : square;
        }
        w[i] = now.keep * w[i] - now.size * average / (sqrtf(square) / now.correction + eps);
    }
}

struct RmspropNumbers {
    float alpha, rest, eps, momentum, weight_decay;
};

__global__ void rmsprop(float *w, float *squares, float *buffers, float *averages,
                        const float *grads, const float *scales, RmspropNumbers r, int64_t n,
                        const device_step *step)
{
    float lr = (float)step->lr, scale = scale_of(scales);
    for (int64_t i = thread_index(); i < n; i += n_threads()) {
        float grad = scale * grads[i] + r.weight_decay * w[i];
        float square = squares[i] = r.alpha * squares[i] + r.rest * grad * grad;
        if (averages != nullptr) {
            float mean = averages[i] = r.alpha * averages[i] + r.rest * grad;
            square -= mean * mean;
        }
        float change = grad / (sqrtf(square) + r.eps);
        if (buffers != nullptr)
            change = buffers[i] = r.momentum * buffers[i] + change;
        w[i] -= lr * change;
    }
}

} // namespace engine

using namespace engine;

cudaError_t launch_sgd(const struct sgd_launch *sgd, const struct device_step *step,
                       cudaStream_t stream)
{
    const SgdNumbers numbers = {sgd->momentum, sgd->keep, sgd->weight_decay, sgd->nesterov};
    if (sgd->momentum_buffer != nullptr)
        LAUNCH(sgd_momentum, blocks_for(sgd->n), BLOCK, 0, stream, sgd->w, sgd->momentum_buffer,
               sgd->grad, sgd->scale, numbers, sgd->n, step);
    else
        LAUNCH(sgd_plain, blocks_for(sgd->n), BLOCK, 0, stream, sgd->w, sgd->grad, sgd->scale,
               sgd->weight_decay, sgd->n, step);
    return cudaGetLastError();
}

cudaError_t launch_adam(const struct adam_launch *a, const struct device_step *step,
                        cudaStream_t stream)
{
    const AdamNumbers numbers = {a->beta1, a->beta2, a->eps, a->weight_decay, a->decoupled};
    LAUNCH(adam, blocks_for(a->n), BLOCK, 0, stream, a->w, a->exp_avg, a->exp_avg_sq,
           a->max_exp_avg_sq, a->grad, a->scale, numbers, a->n, step);
    return cudaGetLastError();
}

cudaError_t launch_rmsprop(const struct rmsprop_launch *r, const struct device_step *step,
                           cudaStream_t stream)
{
    const RmspropNumbers numbers = {r->alpha, r->rest, r->eps, r->momentum, r->weight_decay};
    LAUNCH(rmsprop, blocks_for(r->n), BLOCK, 0, stream, r->w, r->square_avg, r->momentum_buffer,
           r->grad_avg, r->grad, r->scale, numbers, r->n, step);
    return cudaGetLastError();
}
