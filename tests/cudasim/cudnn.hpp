/* cudnn.hpp: what the files of the simulated cuDNN share.
 *
 * Legacy descriptor calls only. Each call refuses what the real library refuses, with its status;
 * why, is what cudnnGetLastErrorString tells.
 */
#ifndef TESTS_CUDASIM_CUDNN_HPP
#define TESTS_CUDASIM_CUDNN_HPP

#include <cudnn.h>
#include <string>

#include "tests/cudasim/library.hpp"

struct cudnnContext {
    int device;
    cudaStream_t stream;
};

struct cudnnTensorStruct {
    sim::View view; /* rank 0: not set */
};

/* dim: k, c, r, s, whatever the format. */
struct cudnnFilterStruct {
    sim::View view;
    cudnnTensorFormat_t format;
};

struct cudnnActivationStruct {
    cudnnActivationMode_t mode;
    cudnnNanPropagation_t nan;
    double coef, swish_beta;
};

namespace sim
{

/* Keeps the sentence for cudnnGetLastErrorString; returns the status. */
cudnnStatus_t cudnn_refuse(cudnnStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Leaves the function with `status` and a sentence where the condition holds. */
#define REFUSE_IF(condition, status, ...)                                                          \
    do {                                                                                           \
        if (condition)                                                                             \
            return sim::cudnn_refuse(status, __VA_ARGS__);                                         \
    } while (0)

/* Leaves the function where the call within was refused. */
#define REFUSED(call)                                                                              \
    do {                                                                                           \
        cudnnStatus_t refused_ = (call);                                                           \
        if (refused_ != CUDNN_STATUS_SUCCESS)                                                      \
            return refused_;                                                                       \
    } while (0)

Type cudnn_type(cudnnDataType_t type); /* Type::none: not simulated */
cudnnDataType_t cudnn_data_type(Type type);

/* The scaling factors' type: double for double tensors, else float. */
double cudnn_scalar(const View &view, const void *factor);

/* Strides of dims (n, c, spatial…) in a format. */
View cudnn_packed(cudnnTensorFormat_t format, Type type, const std::vector<int64_t> &dim);
bool cudnn_is_nhwc(const View &view);
std::string cudnn_dims(const View &view);

/* A tensor that a call takes. `data` is checked where it is a pointer to device memory that must be
 * there. */
struct CudnnTensor {
    const char *name;
    const View *view; /* NULL: no descriptor */
    const void *data;
};

template <typename Descriptor> const View *cudnn_view(Descriptor descriptor)
{
    return descriptor ? &descriptor->view : nullptr;
}

/* The handle is one and belongs to the device that the thread uses; each tensor is there, set and
 * aligned. */
cudnnStatus_t cudnn_check(cudnnHandle_t handle, const char *call,
                          std::initializer_list<CudnnTensor> tensors);

/* What a failed launch becomes. */
cudnnStatus_t cudnn_launched(cudaError_t error, const char *call);

double activation_forward(const cudnnActivationStruct &activation, double x);
double activation_backward(const cudnnActivationStruct &activation, double x, double y, double dy);

} // namespace sim

#endif
