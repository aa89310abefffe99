/* cudnn_handle.cc: handles, versions, and what a refused call says. */
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "tests/cudasim/cudnn.hpp"

namespace sim
{

static thread_local char last_error[512];

cudnnStatus_t cudnn_refuse(cudnnStatus_t status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}

static cudnnStatus_t check_tensor(const char *call, const CudnnTensor &tensor)
{
    const View *view = tensor.view;
    REFUSE_IF(!view, CUDNN_STATUS_BAD_PARAM, "%s: no descriptor of %s", call, tensor.name);
    REFUSE_IF(view->rank == 0, CUDNN_STATUS_BAD_PARAM, "%s: the descriptor of %s was never set",
              call, tensor.name);
    REFUSE_IF(!tensor.data, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: %s is NULL", call,
              tensor.name);
    REFUSE_IF(!aligned(tensor.data, type_bytes(view->type)),
              CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "%s: %s is not aligned to its elements",
              call, tensor.name);
    for (int i = 0; i < view->rank; i++)
        REFUSE_IF(view->stride[i] < 0, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
                  "%s: %s has a negative stride", call, tensor.name);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_check(cudnnHandle_t handle, const char *call,
                          std::initializer_list<CudnnTensor> tensors)
{
    REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no handle", call);
    REFUSE_IF(handle->device != current_device(), CUDNN_STATUS_EXECUTION_FAILED_CUDART,
              "%s: the handle is of device %d, the thread uses device %d", call, handle->device,
              current_device());
    for (auto &tensor : tensors)
        REFUSED(check_tensor(call, tensor));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_launched(cudaError_t error, const char *call)
{
    REFUSE_IF(error != cudaSuccess, CUDNN_STATUS_EXECUTION_FAILED_CUDART, "%s: %s", call,
              cudaGetErrorString(error));
    return CUDNN_STATUS_SUCCESS;
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM, "cudnnCreate: no place for the handle");
    int count = 0;
    REFUSE_IF(cudaGetDeviceCount(&count) != cudaSuccess, CUDNN_STATUS_NOT_INITIALIZED,
              "cudaGetDeviceCount(&count) != cudaSuccess");
    *handle = new cudnnContext{current_device(), nullptr};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM, "cudnnSetStream: no handle");
    REFUSE_IF(stream && stream_device(stream) != handle->device,
              CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH,
              "cudnnSetStream: the handle is of device %d, the stream of device %d", handle->device,
              stream_device(stream));
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
    REFUSE_IF(!handle || !stream, CUDNN_STATUS_BAD_PARAM, "cudnnGetStream: NULL");
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion(void)
{
    return CUDART_VERSION;
}

void cudnnGetLastErrorString(char *message, size_t max_size)
{
    if (message && max_size > 0)
        snprintf(message, max_size, "%s", last_error);
    last_error[0] = '\0';
}

#define NAME(status)                                                                               \
    {                                                                                              \
        status, #status                                                                            \
    }
static const struct {
    cudnnStatus_t status;
    const char *name;
} names[] = {
    NAME(CUDNN_STATUS_SUCCESS),
    NAME(CUDNN_STATUS_NOT_INITIALIZED),
    NAME(CUDNN_STATUS_BAD_PARAM),
    NAME(CUDNN_STATUS_BAD_PARAM_NULL_POINTER),
    NAME(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER),
    NAME(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT),
    NAME(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH),
    NAME(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH),
    NAME(CUDNN_STATUS_NOT_SUPPORTED),
    NAME(CUDNN_STATUS_NOT_SUPPORTED_SHAPE),
    NAME(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE),
    NAME(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT),
    NAME(CUDNN_STATUS_INTERNAL_ERROR),
    NAME(CUDNN_STATUS_EXECUTION_FAILED),
    NAME(CUDNN_STATUS_EXECUTION_FAILED_CUDART),
};
#undef NAME

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    for (auto &row : names)
        if (row.status == status)
            return row.name;
    return "CUDNN_UNKNOWN_STATUS";
}
