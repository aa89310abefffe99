/* cublaslt_desc.cc: cuBLASLt's layouts, descriptors and preferences: attributes in tables, read and
 * written by size.
 *
 * As in the real library any value can be set; what makes no sense is refused when it is used.
 */
#include <cstddef>
#include <cstring>

#include "tests/cudasim/cublaslt_desc.hpp"

namespace sim
{

struct Attribute {
    int attribute;
    size_t offset, bytes;
};

#define ROW(attribute, type, field)                                                                \
    {                                                                                              \
        attribute, offsetof(type, field), sizeof(type::field)                                      \
    }

static const Attribute layout_attributes[] = {
    ROW(CUBLASLT_MATRIX_LAYOUT_TYPE, LtLayout, type),
    ROW(CUBLASLT_MATRIX_LAYOUT_ORDER, LtLayout, order),
    ROW(CUBLASLT_MATRIX_LAYOUT_ROWS, LtLayout, rows),
    ROW(CUBLASLT_MATRIX_LAYOUT_COLS, LtLayout, cols),
    ROW(CUBLASLT_MATRIX_LAYOUT_LD, LtLayout, ld),
    ROW(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, LtLayout, batch_count),
    ROW(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, LtLayout, batch_stride),
    ROW(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, LtLayout, plane_offset),
    ROW(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, LtLayout, batch_mode),
};

static const Attribute matmul_attributes[] = {
    ROW(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, LtMatmul, compute),
    ROW(CUBLASLT_MATMUL_DESC_SCALE_TYPE, LtMatmul, scale),
    ROW(CUBLASLT_MATMUL_DESC_POINTER_MODE, LtMatmul, pointer_mode),
    ROW(CUBLASLT_MATMUL_DESC_TRANSA, LtMatmul, transa),
    ROW(CUBLASLT_MATMUL_DESC_TRANSB, LtMatmul, transb),
    ROW(CUBLASLT_MATMUL_DESC_TRANSC, LtMatmul, transc),
    ROW(CUBLASLT_MATMUL_DESC_FILL_MODE, LtMatmul, fill),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE, LtMatmul, epilogue),
    ROW(CUBLASLT_MATMUL_DESC_BIAS_POINTER, LtMatmul, bias),
    ROW(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, LtMatmul, bias_batch_stride),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, LtMatmul, aux),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, LtMatmul, aux_ld),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, LtMatmul, aux_batch_stride),
    ROW(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, LtMatmul, sm_count),
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, LtMatmul, aux_type),
    ROW(CUBLASLT_MATMUL_DESC_FAST_ACCUM, LtMatmul, fast_accum),
    ROW(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, LtMatmul, bias_type),
};

static const Attribute preference_attributes[] = {
    ROW(CUBLASLT_MATMUL_PREF_SEARCH_MODE, LtPreference, search_mode),
    ROW(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, LtPreference, workspace_bytes),
    ROW(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, LtPreference, reduction_mask),
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, LtPreference, alignment[0]),
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, LtPreference, alignment[1]),
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, LtPreference, alignment[2]),
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, LtPreference, alignment[3]),
    ROW(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, LtPreference, waves),
    ROW(CUBLASLT_MATMUL_PREF_IMPL_MASK, LtPreference, implementation_mask),
};
#undef ROW

template <size_t N> static const Attribute *find(const Attribute (&table)[N], int attribute)
{
    for (auto &row : table)
        if (row.attribute == attribute)
            return &row;
    return nullptr;
}

static cublasStatus_t set(void *object, const Attribute *row, const void *value, size_t bytes)
{
    if (!object || !row || !value || bytes != row->bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(static_cast<char *>(object) + row->offset, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* bytes == 0 asks how many there are. */
static cublasStatus_t get(const void *object, const Attribute *row, void *value, size_t bytes,
                          size_t *written)
{
    if (!object || !row || (bytes == 0 ? !written : !value || bytes != row->bytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (bytes)
        memcpy(value, static_cast<const char *>(object) + row->offset, bytes);
    if (written)
        *written = row->bytes;
    return CUBLAS_STATUS_SUCCESS;
}

/* Puts a value into the API's opaque memory. */
template <typename Opaque, typename Value>
static cublasStatus_t fill(Opaque *opaque, size_t size, const Value &value)
{
    static_assert(sizeof(Value) <= sizeof(Opaque), "the API's size is fixed");
    if (!opaque)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (size < sizeof value)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memset(opaque, 0, sizeof *opaque);
    memcpy(opaque->data, &value, sizeof value);
    return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque, typename Value>
static cublasStatus_t create(Opaque **object, const Value &value)
{
    if (!object)
        return CUBLAS_STATUS_INVALID_VALUE;
    *object = new Opaque;
    return fill(*object, sizeof **object, value);
}

static LtLayout layout_of(cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
    return {type, CUBLASLT_ORDER_COL, rows, cols, ld, 0, 0, 1, CUBLASLT_BATCH_MODE_STRIDED};
}

static LtMatmul matmul_of(cublasComputeType_t compute, cudaDataType_t scale)
{
    LtMatmul matmul = {};
    matmul.compute = compute, matmul.scale = scale;
    matmul.fill = CUBLAS_FILL_MODE_FULL;
    matmul.aux_type = matmul.bias_type = -1; /* the output's */
    matmul.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    return matmul;
}

static LtPreference preference_of()
{
    return {CUBLASLT_SEARCH_BEST_FIT,
            CUBLASLT_REDUCTION_SCHEME_MASK,
            0,
            ~uint64_t(0),
            {256, 256, 256, 256},
            0};
}

Type cublas_type(int data_type)
{
    static const struct {
        int data_type;
        Type type;
    } types[] = {{CUDA_R_32F, Type::f32}, {CUDA_R_64F, Type::f64}, {CUDA_R_16BF, Type::bf16}};
    for (auto &row : types)
        if (row.data_type == data_type)
            return row.type;
    return Type::none;
}

} // namespace sim

using namespace sim;

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t cols,
                                                 int64_t ld)
{
    return fill(layout, size, layout_of(type, rows, cols, ld));
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    return create(layout, layout_of(type, rows, cols, ld));
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    return set(layout, find(layout_attributes, attribute), value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void *value, size_t bytes, size_t *written)
{
    return get(layout, find(layout_attributes, attribute), value, bytes, written);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t matmul, size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale)
{
    return fill(matmul, size, matmul_of(compute, scale));
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmul, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    return create(matmul, matmul_of(compute, scale));
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmul)
{
    delete matmul;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmul,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    return set(matmul, find(matmul_attributes, attribute), value, bytes);
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t matmul,
                                              cublasLtMatmulDescAttributes_t attribute, void *value,
                                              size_t bytes, size_t *written)
{
    return get(matmul, find(matmul_attributes, attribute), value, bytes, written);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     size_t size)
{
    return fill(preference, size, preference_of());
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    return create(preference, preference_of());
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    return set(preference, find(preference_attributes, attribute), value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    void *value, size_t bytes, size_t *written)
{
    return get(preference, find(preference_attributes, attribute), value, bytes, written);
}
