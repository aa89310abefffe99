/* cublas_status.cc: names of statuses, and where a refusal's sentence goes. */
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "tests/cudasim/cublas_status.hpp"

namespace sim
{

cublasStatus_t cublas_refuse(cublasStatus_t status, const char *format, ...)
{
    if (!getenv("CUDASIM_LOG"))
        return status;
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    fprintf(stderr, "cublas: status %d: %s\n", int(status), sentence);
    return status;
}

cublasStatus_t cublas_launched(cudaError_t error)
{
    REFUSE_IF(error != cudaSuccess, CUBLAS_STATUS_EXECUTION_FAILED, "%s",
              cudaGetErrorString(error));
    return CUBLAS_STATUS_SUCCESS;
}

#define NAME(status)                                                                               \
    {                                                                                              \
        status, #status                                                                            \
    }
static const struct {
    cublasStatus_t status;
    const char *name;
} names[] = {
    NAME(CUBLAS_STATUS_SUCCESS),          NAME(CUBLAS_STATUS_NOT_INITIALIZED),
    NAME(CUBLAS_STATUS_ALLOC_FAILED),     NAME(CUBLAS_STATUS_INVALID_VALUE),
    NAME(CUBLAS_STATUS_ARCH_MISMATCH),    NAME(CUBLAS_STATUS_MAPPING_ERROR),
    NAME(CUBLAS_STATUS_EXECUTION_FAILED), NAME(CUBLAS_STATUS_INTERNAL_ERROR),
    NAME(CUBLAS_STATUS_NOT_SUPPORTED),    NAME(CUBLAS_STATUS_LICENSE_ERROR),
};
#undef NAME

const char *cublas_status_name(cublasStatus_t status)
{
    for (auto &row : names)
        if (row.status == status)
            return row.name;
    return "CUBLAS_STATUS_UNKNOWN";
}

} // namespace sim
