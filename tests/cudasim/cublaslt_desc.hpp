/* cublaslt_desc.hpp: what the simulated cuBLASLt keeps in the API's opaque descriptors. */
#ifndef TESTS_CUDASIM_CUBLASLT_DESC_HPP
#define TESTS_CUDASIM_CUBLASLT_DESC_HPP

#include <cublasLt.h>

#include "tests/cudasim/number.hpp"

namespace sim
{

struct LtLayout {
    int32_t type, order;
    uint64_t rows, cols;
    int64_t ld, batch_stride, plane_offset;
    int32_t batch_count;
    uint32_t batch_mode;
};

struct LtMatmul {
    int32_t compute, scale, pointer_mode, transa, transb, transc, fill, sm_count, aux_type,
        bias_type;
    uint32_t epilogue;
    int8_t fast_accum;
    const void *bias, *aux;
    int64_t bias_batch_stride, aux_ld, aux_batch_stride;
};

struct LtPreference {
    uint32_t search_mode, reduction_mask;
    uint64_t workspace_bytes, implementation_mask;
    uint32_t alignment[4]; /* of A, B, C, D */
    float waves;
};

struct LtAlgo {
    int32_t id;         /* 0: never filled by a heuristic */
    uint32_t alignment; /* of A, B, C and D, in bytes */
    uint64_t workspace_bytes;
};

/* The descriptor behind an opaque handle; NULL for NULL. */
inline const LtLayout *lt_layout(cublasLtMatrixLayout_t layout)
{
    return layout ? reinterpret_cast<const LtLayout *>(layout->data) : nullptr;
}

inline const LtMatmul *lt_matmul(cublasLtMatmulDesc_t matmul)
{
    return matmul ? reinterpret_cast<const LtMatmul *>(matmul->data) : nullptr;
}

inline const LtPreference *lt_preference(cublasLtMatmulPreference_t preference)
{
    return preference ? reinterpret_cast<const LtPreference *>(preference->data) : nullptr;
}

Type cublas_type(int data_type); /* a cudaDataType; Type::none: not simulated */

} // namespace sim

#endif
