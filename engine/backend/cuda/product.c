/* product.c: see product.h. cuBLASLt's matrices are column-major: a row-major matrix is its
 * transpose there, so Cᵀ = Bᵀ Aᵀ is computed, without moving anything. */
#include "engine/backend/cuda/product.h"

#define PRODUCT_TRY(call)                                                                          \
    do {                                                                                           \
        int try_rc = status_cublas((call), "a matrix product", err);                               \
        if (try_rc)                                                                                \
            return try_rc;                                                                         \
    } while (0)

static cudaDataType_t data_type(enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* [rows, columns], row-major unless it lies transposed. */
static int layout_init(cublasLtMatrixLayout_t *ret_layout, const struct product_matrix *matrix,
                       int64_t rows, int64_t columns, int64_t batch, struct err *err)
{
    int64_t lines = matrix->transposed ? columns : rows,
            length = matrix->transposed ? rows : columns;
    int64_t stride = matrix->stride ? matrix->stride : length;
    int64_t batch_stride = matrix->batch_stride ? matrix->batch_stride : lines * stride;
    int32_t count = (int32_t)(batch ? batch : 1);
    PRODUCT_TRY(cublasLtMatrixLayoutCreate(ret_layout, data_type(matrix->dtype), (uint64_t)length,
                                           (uint64_t)lines, stride));
    PRODUCT_TRY(cublasLtMatrixLayoutSetAttribute(*ret_layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                 &count, sizeof count));
    PRODUCT_TRY(cublasLtMatrixLayoutSetAttribute(*ret_layout,
                                                 CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                 &batch_stride, sizeof batch_stride));
    return 0;
}

static int desc_init(cublasLtMatmulDesc_t *ret_desc, const struct product_shape *shape,
                     struct err *err)
{
    cublasOperation_t first = shape->b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = shape->a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = shape->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    PRODUCT_TRY(cublasLtMatmulDescCreate(
        ret_desc, shape->low ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    PRODUCT_TRY(cublasLtMatmulDescSetAttribute(*ret_desc, CUBLASLT_MATMUL_DESC_TRANSA, &first,
                                               sizeof first));
    PRODUCT_TRY(cublasLtMatmulDescSetAttribute(*ret_desc, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                               sizeof second));
    PRODUCT_TRY(cublasLtMatmulDescSetAttribute(*ret_desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                               sizeof epilogue));
    return 0;
}

/* Of those that need no more than the workspace and that alignment, and no atomic additions. */
static int preference_init(cublasLtMatmulPreference_t *ret_preference, uint32_t alignment,
                           struct err *err)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    uint64_t workspace = PRODUCT_WORKSPACE_BYTES;
    uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    PRODUCT_TRY(cublasLtMatmulPreferenceCreate(ret_preference));
    PRODUCT_TRY(cublasLtMatmulPreferenceSetAttribute(
        *ret_preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
    PRODUCT_TRY(cublasLtMatmulPreferenceSetAttribute(
        *ret_preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes));
    for (int i = 0; i < 4; i++)
        PRODUCT_TRY(cublasLtMatmulPreferenceSetAttribute(*ret_preference, alignments[i], &alignment,
                                                         sizeof alignment));
    return 0;
}

static int set_bias(const struct product *product, const void *bias, struct err *err)
{
    PRODUCT_TRY(cublasLtMatmulDescSetAttribute(product->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                               &bias, sizeof bias));
    return 0;
}

static int choose_algorithm(struct product *product, uint32_t alignment, struct err *err)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t best;
    int found = 0, rc = preference_init(&preference, alignment, err);
    if (rc == 0)
        rc = status_cublas(cublasLtMatmulAlgoGetHeuristic(product->device->products, product->desc,
                                                          product->b, product->a, product->c,
                                                          product->c, preference, 1, &best, &found),
                           "the choice of a matrix product", err);
    if (rc == 0 && found == 0)
        rc = err_set(err, ERR_DEVICE_FAILED, "cuBLASLt has no algorithm for a matrix product");
    if (rc == 0)
        product->algorithm = best.algo;
    if (preference)
        cublasLtMatmulPreferenceDestroy(preference);
    return rc;
}

int product_init(struct product *product, struct device *device, const struct product_shape *shape,
                 struct err *err)
{
    *product = (struct product){.device = device};
    int rc = desc_init(&product->desc, shape, err);
    if (rc == 0)
        rc = layout_init(&product->a, &shape->a, shape->m, shape->k, shape->batch, err);
    if (rc == 0)
        rc = layout_init(&product->b, &shape->b, shape->k, shape->n, shape->batch, err);
    if (rc == 0)
        rc = layout_init(&product->c, &shape->c, shape->m, shape->n, shape->batch, err);
    if (rc == 0 && shape->bias) /* a choice wants one that is aligned; any will do */
        rc = set_bias(product, device->product_workspace, err);
    return rc == 0 ? choose_algorithm(product, shape->alignment ? shape->alignment : 16, err) : rc;
}

void product_done(struct product *product)
{
    if (product->a)
        cublasLtMatrixLayoutDestroy(product->a);
    if (product->b)
        cublasLtMatrixLayoutDestroy(product->b);
    if (product->c)
        cublasLtMatrixLayoutDestroy(product->c);
    if (product->desc)
        cublasLtMatmulDescDestroy(product->desc);
}

int product_run(const struct product *product, float alpha, const void *a, const void *b,
                const void *bias, void *c, struct err *err)
{
    const struct device *device = product->device;
    const float none = 0;
    int rc = bias ? set_bias(product, bias, err) : 0;
    if (rc)
        return rc;
    PRODUCT_TRY(cublasLtMatmul(device->products, product->desc, &alpha, b, product->b, a,
                               product->a, &none, c, product->c, c, product->c, &product->algorithm,
                               device->product_workspace, PRODUCT_WORKSPACE_BYTES,
                               device->compute));
    return 0;
}
