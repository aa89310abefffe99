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
    REFUSE_IF(error != cudaSuccess, CUBLAS_STATUS_EXECUTION_FAILED, "%s", cudaGetErrorString(error));
    return CUBLAS_STATUS_SUCCESS;
}

} // namespace sim
