/* status.h: what CUDA's libraries answer, as our errors: each its own sentence. `what`: the call,
 * in a user's words ("the copy to the device"). Any thread. */
#ifndef ENGINE_BACKEND_CUDA_STATUS_H
#define ENGINE_BACKEND_CUDA_STATUS_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nccl.h>

#include "proto/err.h"

/* 0; ERR_NOMEM where the device's memory is short; else ERR_DEVICE_FAILED. */
int status_cuda(cudaError_t status, const char *what, struct err *err);
int status_cublas(cublasStatus_t status, const char *what, struct err *err);
int status_cudnn(cudnnStatus_t status, const char *what, struct err *err);
int status_nccl(ncclResult_t status, const char *what, struct err *err);

/* Returns from a function whose last parameter is `err` where a call fails. */
#define CUDA_TRY(call, what)                                                                       \
    do {                                                                                           \
        int try_rc = status_cuda((call), (what), err);                                             \
        if (try_rc)                                                                                \
            return try_rc;                                                                         \
    } while (0)

#endif
