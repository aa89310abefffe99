/* status.c: see status.h. */
#include "engine/backend/cuda/status.h"

#include <stddef.h>

/* What a user can do something about, by CUDA's code. */
static const struct {
    cudaError_t status;
    int code;
    const char *sentence;
} sentences[] = {
    {cudaErrorMemoryAllocation, ERR_NOMEM, "the GPU is out of memory"},
    {cudaErrorInsufficientDriver, ERR_DEVICE_FAILED,
     "the NVIDIA driver is missing, or older than CUDA 13 needs (580)"},
    {cudaErrorNoDevice, ERR_DEVICE_FAILED, "the NVIDIA driver finds no GPU"},
    {cudaErrorNoKernelImageForDevice, ERR_DEVICE_FAILED,
     "this build has no code for that GPU's compute capability"},
    {cudaErrorDevicesUnavailable, ERR_DEVICE_FAILED,
     "another process has the GPU for itself (its compute mode is exclusive)"},
    {cudaErrorSystemNotReady, ERR_DEVICE_FAILED,
     "the GPU's system is not ready (is nvidia-fabricmanager running?)"},
    {cudaErrorECCUncorrectable, ERR_DEVICE_FAILED,
     "the GPU's memory has an error that it cannot correct"},
};

int status_cuda(cudaError_t status, const char *what, struct err *err)
{
    if (status == cudaSuccess)
        return 0;
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++)
        if (sentences[i].status == status)
            return err_set(err, sentences[i].code, "%s: %s", what, sentences[i].sentence);
    return err_set(err, ERR_DEVICE_FAILED, "%s: %s (CUDA error %d)", what,
                   cudaGetErrorString(status), (int)status);
}

int status_cublas(cublasStatus_t status, const char *what, struct err *err)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    int code = status == CUBLAS_STATUS_ALLOC_FAILED ? ERR_NOMEM : ERR_DEVICE_FAILED;
    return err_set(err, code, "%s: cuBLASLt: %s", what, cublasLtGetStatusString(status));
}

int status_cudnn(cudnnStatus_t status, const char *what, struct err *err)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return 0;
    int code = status == CUDNN_STATUS_ALLOC_FAILED ? ERR_NOMEM : ERR_DEVICE_FAILED;
    return err_set(err, code, "%s: cuDNN: %s", what, cudnnGetErrorString(status));
}

int status_nccl(ncclResult_t status, const char *what, struct err *err)
{
    if (status == ncclSuccess || status == ncclInProgress)
        return 0;
    return err_set(err, ERR_DEVICE_FAILED, "%s: NCCL: %s", what, ncclGetErrorString(status));
}
