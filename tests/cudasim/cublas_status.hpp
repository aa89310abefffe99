/* cublas_status.hpp: how the simulated cuBLAS and cuBLASLt refuse. The real ones tell why in their
 * log (CUBLAS_LOGINFO_DBG); these on standard error where CUDASIM_LOG is set. */
#ifndef TESTS_CUDASIM_CUBLAS_STATUS_HPP
#define TESTS_CUDASIM_CUBLAS_STATUS_HPP

#include <cublas_v2.h>

#include "tests/cudasim/library.hpp"

namespace sim
{

cublasStatus_t cublas_refuse(cublasStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

cublasStatus_t cublas_launched(cudaError_t error);

const char *cublas_status_name(cublasStatus_t status);

/* Leaves the function with `status` and a sentence where the condition holds. */
#define REFUSE_IF(condition, status, ...)                                                          \
    do {                                                                                           \
        if (condition)                                                                             \
            return sim::cublas_refuse(status, __VA_ARGS__);                                        \
    } while (0)

/* Leaves the function where the call within was refused. */
#define REFUSED(call)                                                                              \
    do {                                                                                           \
        cublasStatus_t refused_ = (call);                                                          \
        if (refused_ != CUBLAS_STATUS_SUCCESS)                                                     \
            return refused_;                                                                       \
    } while (0)

} // namespace sim

#endif
