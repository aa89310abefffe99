/* loss.h: the kernels of loss.cu: losses and predictions. As launchers.h. */
#ifndef ENGINE_BACKEND_CUDA_LOSS_H
#define ENGINE_BACKEND_CUDA_LOSS_H

#include "engine/backend/cuda/launchers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* loss.cu: a loss a row or element in double, and their sums; grad NULL: not wanted. */
struct class_loss_launch {
    const float *output;    /* [rows, classes] */
    const int64_t *target;  /* [rows] */
    const double *weight;   /* [classes], or NULL */
    double total_weight;    /* of all classes */
    double label_smoothing; /* of nll 0 */
    int64_t ignore_index, rows, classes, rows_a_sample;
    float *grad;
    double *part; /* [rows] */
};
cudaError_t launch_cross_entropy(const struct class_loss_launch *loss,
                                 const struct device_step *step, struct device_fault *fault,
                                 cudaStream_t stream);
cudaError_t launch_nll(const struct class_loss_launch *loss, const struct device_step *step,
                       struct device_fault *fault, cudaStream_t stream);
enum value_loss { VALUE_LOSS_MSE, VALUE_LOSS_L1, VALUE_LOSS_BCE, VALUE_LOSS_COUNT };
enum { VALUE_LOSS_PART = 4096 }; /* elements of a partial sum */
struct value_loss_launch {
    const float *output, *target;
    const double *pos_weight; /* [n_pos_weight], or NULL */
    int64_t n_pos_weight;
    int64_t count; /* elements of a sum */
    int64_t parts; /* of a sum: ⌈count / VALUE_LOSS_PART⌉ */
    int64_t sums;
    float *grad;
    double *part; /* [sums, parts] */
};
cudaError_t launch_value_loss(enum value_loss kind, const struct value_loss_launch *loss,
                              const struct device_step *step, cudaStream_t stream);
cudaError_t launch_argmax(const float *logits, int64_t rows, int64_t classes, int64_t *ret_class,
                          cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
