/* loss.cu: losses with their gradients, and what a classifier predicts.
 *
 * A block is a row of classes, or a part of the elements; its sum is added in one order, in double;
 * so are the parts. The gradient comes along divided by the whole batch's divisor.
 */
#include "engine/backend/cuda/loss.h"
#include "engine/backend/cuda/real.cuh"

namespace engine
{

struct ClassLoss {
    double total_weight, label_smoothing;
    int64_t ignore_index, classes, rows_a_sample;
};

/* Whether the row counts; a target that names no class is left in *fault and does not. */
__device__ inline bool row_counts(const ClassLoss &loss, int64_t row, int64_t target,
                                  device_fault *fault)
{
    if (target == loss.ignore_index)
        return false;
    if (target >= 0 && target < loss.classes)
        return true;
    if (threadIdx.x == 0)
        blame(fault, FAULT_CLASS, row / loss.rows_a_sample, target, loss.classes);
    return false;
}

__device__ inline void ignore_row(float *grad, int64_t classes, double *part)
{
    for (int64_t c = threadIdx.x; grad != nullptr && c < classes; c += blockDim.x)
        grad[c] = 0;
    if (threadIdx.x == 0)
        *part = 0;
}

/* log(sum(exp(row))); a NaN among the logits makes it NaN. */
__device__ inline double log_sum_exp(const float *row, int64_t n)
{
    __shared__ float most[BLOCK];
    __shared__ double sums[BLOCK];
    float largest = -INFINITY;
    for (int64_t c = threadIdx.x; c < n; c += blockDim.x)
        largest = row[c] > largest ? row[c] : largest;
    largest = block_reduce(largest, most, Largest());
    double sum = 0;
    for (int64_t c = threadIdx.x; c < n; c += blockDim.x)
        sum += (double)expf(row[c] - largest);
    return (double)largest + log(block_reduce(sum, sums, Sum()));
}

/* The smoothed part: every class is the target, each with its weight. */
__device__ inline double smooth_loss(const ClassLoss &loss, const float *row, const double *weights,
                                     double lse)
{
    __shared__ double sums[BLOCK];
    double sum = 0;
    for (int64_t c = threadIdx.x; c < loss.classes; c += blockDim.x)
        sum += (weights != nullptr ? weights[c] : 1) * (double)row[c];
    return loss.total_weight * lse - block_reduce(sum, sums, Sum());
}

__global__ void cross_entropy(const float *output, const int64_t *targets, const double *weights,
                              ClassLoss loss, float *grads, double *parts, const device_step *step,
                              device_fault *fault)
{
    int64_t i = blockIdx.x, target = targets[i], n = loss.classes;
    const float *row = output + i * n;
    float *grad = grads != nullptr ? grads + i * n : nullptr;
    if (!row_counts(loss, i, target, fault)) {
        ignore_row(grad, n, &parts[i]);
        return;
    }
    double weight = weights != nullptr ? weights[target] : 1;
    double lse = log_sum_exp(row, n), sharp = (1 - loss.label_smoothing) * weight;
    double spread = loss.label_smoothing / (double)n;
    double smooth = spread > 0 ? smooth_loss(loss, row, weights, lse) : 0;
    if (threadIdx.x == 0)
        parts[i] = sharp * (lse - (double)row[target]) + spread * smooth;
    double whole = sharp + spread * loss.total_weight;
    for (int64_t c = threadIdx.x; grad != nullptr && c < n; c += blockDim.x) {
        double wanted = spread * (weights != nullptr ? weights[c] : 1) + (c == target ? sharp : 0);
        double probability = (double)expf((float)((double)row[c] - lse));
        grad[c] = (float)((whole * probability - wanted) / step->loss_divisor);
    }
}

__global__ void nll(const float *output, const int64_t *targets, const double *weights,
                    ClassLoss loss, float *grads, double *parts, const device_step *step,
                    device_fault *fault)
{
    int64_t i = blockIdx.x, target = targets[i], n = loss.classes;
    float *grad = grads != nullptr ? grads + i * n : nullptr;
    if (!row_counts(loss, i, target, fault)) {
        ignore_row(grad, n, &parts[i]);
        return;
    }
    double weight = weights != nullptr ? weights[target] : 1;
    if (threadIdx.x == 0)
        parts[i] = -weight * (double)output[i * n + target];
    for (int64_t c = threadIdx.x; grad != nullptr && c < n; c += blockDim.x)
        grad[c] = (float)(c == target ? -weight / step->loss_divisor : 0);
}

/* The loss of an element, and its derivative, not yet divided. */
struct Element {
    double loss, slope;
};

struct Mse {
    static __device__ Element at(double x, double y, double)
    {
        return {(x - y) * (x - y), 2 * (x - y)};
    }
};

/* PyTorch's gradient of |0| is 0. */
struct L1 {
    static __device__ Element at(double x, double y, double)
    {
        double difference = x - y;
        return {fabs(difference), difference == 0 ? 0 : copysign(1.0, difference)};
    }
};

/* (1 - y) x + (1 + (w - 1) y) log(1 + exp(-x)), in the form in which nothing overflows. */
struct Bce {
    static __device__ Element at(double x, double y, double weight)
    {
        double positive = 1 + (weight - 1) * y, small = exp(-fabs(x));
        double without = (x > 0 ? small : 1) / (1 + small); /* 1 - sigmoid(x) */
        return {(1 - y) * x + positive * (log1p(small) + fmax(-x, 0.0)),
                1 - y - positive * without};
    }
};

template <typename F>
__global__ void value_loss(const float *output, const float *target, const double *pos_weight,
                           int64_t n_pos_weight, int64_t count, int64_t n_parts, float *grad,
                           double *parts, const device_step *step)
{
    __shared__ double sums[BLOCK];
    int64_t sum_index = blockIdx.x / n_parts, from = blockIdx.x % n_parts * VALUE_LOSS_PART;
    int64_t to = from + VALUE_LOSS_PART < count ? from + VALUE_LOSS_PART : count;
    double sum = 0;
    for (int64_t k = from + threadIdx.x; k < to; k += blockDim.x) {
        int64_t i = sum_index * count + k;
        double weight = n_pos_weight > 0 ? pos_weight[i % n_pos_weight] : 1;
        Element element = F::at((double)output[i], (double)target[i], weight);
        sum += element.loss;
        if (grad != nullptr)
            grad[i] = (float)(element.slope / step->loss_divisor);
    }
    sum = block_reduce(sum, sums, Sum());
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

/* A logit and its class; NaN counts as the largest, of equal ones the first does. */
struct Candidate {
    float logit;
    int64_t at;
};

struct Better {
    __device__ Candidate operator()(Candidate a, Candidate b) const
    {
        bool a_nan = a.logit != a.logit, b_nan = b.logit != b.logit;
        if (a_nan != b_nan)
            return a_nan ? a : b;
        if (!a_nan && a.logit != b.logit)
            return a.logit > b.logit ? a : b;
        return a.at < b.at ? a : b;
    }
};

__global__ void argmax(const float *logits, int64_t classes, int64_t *ret_class)
{
    __shared__ Candidate room[BLOCK];
    const float *row = logits + (int64_t)blockIdx.x * classes;
    Candidate best = {-INFINITY, INT64_MAX};
    for (int64_t c = threadIdx.x; c < classes; c += blockDim.x)
        best = Better()(best, Candidate{row[c], c});
    best = block_reduce(best, room, Better());
    if (threadIdx.x == 0)
        ret_class[blockIdx.x] = best.at;
}

template <typename F>
void run_value_loss(const value_loss_launch *l, const device_step *step, cudaStream_t stream)
{
    LAUNCH(value_loss<F>, (unsigned)(l->sums * l->parts), threads_for(l->count), 0, stream,
           l->output, l->target, l->pos_weight, l->n_pos_weight, l->count, l->parts, l->grad,
           l->part, step);
}

ClassLoss class_loss(const class_loss_launch *l)
{
    return {l->total_weight, l->label_smoothing, l->ignore_index, l->classes, l->rows_a_sample};
}

} // namespace engine

using namespace engine;

cudaError_t launch_cross_entropy(const struct class_loss_launch *l, const struct device_step *step,
                                 struct device_fault *fault, cudaStream_t stream)
{
    LAUNCH(cross_entropy, (unsigned)l->rows, threads_for(l->classes), 0, stream, l->output,
           l->target, l->weight, class_loss(l), l->grad, l->part, step, fault);
    return cudaGetLastError();
}

cudaError_t launch_nll(const struct class_loss_launch *l, const struct device_step *step,
                       struct device_fault *fault, cudaStream_t stream)
{
    LAUNCH(nll, (unsigned)l->rows, threads_for(l->classes), 0, stream, l->output, l->target,
           l->weight, class_loss(l), l->grad, l->part, step, fault);
    return cudaGetLastError();
}

cudaError_t launch_value_loss(enum value_loss kind, const struct value_loss_launch *loss,
                              const struct device_step *step, cudaStream_t stream)
{
    static void (*const kinds[VALUE_LOSS_COUNT])(const value_loss_launch *, const device_step *,
                                                 cudaStream_t) = {
        run_value_loss<Mse>, run_value_loss<L1>, run_value_loss<Bce>};
    kinds[kind](loss, step, stream);
    return cudaGetLastError();
}

cudaError_t launch_argmax(const float *logits, int64_t rows, int64_t classes, int64_t *ret_class,
                          cudaStream_t stream)
{
    LAUNCH(argmax, (unsigned)rows, threads_for(classes), 0, stream, logits, classes, ret_class);
    return cudaGetLastError();
}
