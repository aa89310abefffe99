/* cublas.cc: cuBLAS' handle and its matrix products: C = alpha op(A) op(B) + beta C, in columns. */
#include <algorithm>

#include "tests/cudasim/cublas_status.hpp"
#include "tests/cudasim/loops.hpp"

struct cublasContext {
    int device;
    cudaStream_t stream;
    cublasMath_t math;
    cublasAtomicsMode_t atomics;
    void *workspace; /* the caller's; NULL: the library's own */
    size_t workspace_bytes;
};

namespace sim
{

struct Matrix {
    const void *data;
    cudaDataType type;
    int64_t ld, stride; /* to the next column, to the next matrix */
};

struct Call {
    const char *name;
    cublasOperation_t transa, transb;
    int m, n, k, batch;
    const void *alpha, *beta; /* floats of the host */
    Matrix a, b, c;
    cublasComputeType_t compute;
};

static Type matrix_type(cudaDataType type)
{
    return type == CUDA_R_32F ? Type::f32 : type == CUDA_R_16BF ? Type::bf16 : Type::none;
}

static View matrix_view(const Matrix &matrix, const Call &call, int64_t rows, int64_t cols,
                        cublasOperation_t operation)
{
    View view = view_packed(matrix_type(matrix.type), {call.batch, rows, cols});
    bool plain = operation == CUBLAS_OP_N;
    view.stride[0] = matrix.stride;
    view.stride[1] = plain ? 1 : matrix.ld;
    view.stride[2] = plain ? matrix.ld : 1;
    return view;
}

static cublasStatus_t check_matrix(const char *call, const char *name, const Matrix &matrix,
                                   const View &view, bool plain)
{
    int64_t column = plain ? view.dim[1] : view.dim[2];
    REFUSE_IF(matrix.ld < std::max<int64_t>(column, 1), CUBLAS_STATUS_INVALID_VALUE,
              "%s: a leading dimension of %lld for %s with columns of %lld", call,
              (long long)matrix.ld, name, (long long)column);
    REFUSE_IF(!matrix.data || !aligned(matrix.data, type_bytes(view.type)),
              CUBLAS_STATUS_INVALID_VALUE, "%s: %s at %p", call, name, matrix.data);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check(cublasHandle_t handle, const Call &c)
{
    Type a = matrix_type(c.a.type), out = matrix_type(c.c.type);
    bool floats = a == Type::f32 && out == Type::f32, low = a == Type::bf16 && out != Type::none;
    bool fast =
        c.compute == CUBLAS_COMPUTE_32F_FAST_TF32 || c.compute == CUBLAS_COMPUTE_32F_FAST_16BF;
    bool plain = c.compute == CUBLAS_COMPUTE_32F || c.compute == CUBLAS_COMPUTE_32F_PEDANTIC;
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "%s: no handle", c.name);
    REFUSE_IF(handle->device != current_device(), CUBLAS_STATUS_EXECUTION_FAILED,
              "%s: the handle is of device %d, the thread uses device %d", c.name, handle->device,
              current_device());
    REFUSE_IF(c.m < 0 || c.n < 0 || c.k < 0 || c.batch < 0 || !c.alpha || !c.beta ||
                  unsigned(c.transa) > CUBLAS_OP_C || unsigned(c.transb) > CUBLAS_OP_C,
              CUBLAS_STATUS_INVALID_VALUE, "%s: m %d, n %d, k %d, %d matrices, or no alpha or beta",
              c.name, c.m, c.n, c.k, c.batch);
    REFUSE_IF(c.a.type != c.b.type || !(floats || low) || !(plain || (fast && floats)),
              CUBLAS_STATUS_NOT_SUPPORTED,
              "%s: types %d, %d, %d, compute type %d (or not simulated)", c.name, c.a.type,
              c.b.type, c.c.type, c.compute);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t multiply(cublasHandle_t handle, const Call &c)
{
    REFUSED(check(handle, c));
    if (c.m == 0 || c.n == 0 || c.batch == 0)
        return CUBLAS_STATUS_SUCCESS;
    View a = matrix_view(c.a, c, c.m, c.k, c.transa), b = matrix_view(c.b, c, c.k, c.n, c.transb);
    View out = matrix_view(c.c, c, c.m, c.n, CUBLAS_OP_N);
    REFUSED(check_matrix(c.name, "A", c.a, a, c.transa == CUBLAS_OP_N));
    REFUSED(check_matrix(c.name, "B", c.b, b, c.transb == CUBLAS_OP_N));
    REFUSED(check_matrix(c.name, "C", c.c, out, true));
    Gemm size = {c.m, c.n, c.k};
    double alpha = number_load(Type::f32, c.alpha, 0), beta = number_load(Type::f32, c.beta, 0);
    Launch launch(c.name, handle->stream);
    launch.in(c.a.data, a);
    launch.in(c.b.data, b);
    launch.out(const_cast<void *>(c.c.data), out, beta != 0);
    launch.scratch(handle->workspace, handle->workspace_bytes);
    int64_t batch = c.batch;
    return cublas_launched(launch.enqueue([=](Memory memory) {
        doubles left = view_load(a, memory[0]), right = view_load(b, memory[1]), products;
        for (int64_t i = 0; i < batch; i++) {
            doubles product =
                gemm(size, left.data() + i * size.m * size.k, right.data() + i * size.k * size.n);
            products.insert(products.end(), product.begin(), product.end());
        }
        view_store(out, memory[2], products, alpha, beta);
    }));
}

} // namespace sim

using namespace sim;

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    int count = 0;
    REFUSE_IF(!handle, CUBLAS_STATUS_INVALID_VALUE, "cublasCreate: NULL");
    REFUSE_IF(cudaGetDeviceCount(&count) != cudaSuccess, CUBLAS_STATUS_NOT_INITIALIZED,
              "no device");
    *handle = new cublasContext{};
    (*handle)->device = current_device();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "cublasDestroy: no handle");
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

/* As the real one: the caller's workspace is forgotten. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "cublasSetStream: no handle");
    handle->stream = stream;
    handle->workspace = nullptr;
    handle->workspace_bytes = 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "cublasGetStream: no handle");
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "cublasSetWorkspace: no handle");
    REFUSE_IF(!aligned(workspace, 256), CUBLAS_STATUS_INVALID_VALUE,
              "cublasSetWorkspace: %p is not aligned to 256 bytes", workspace);
    handle->workspace = workspace;
    handle->workspace_bytes = workspace ? bytes : 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "cublasSetMathMode: no handle");
    REFUSE_IF((mode & 0xf) > CUBLAS_TF32_TENSOR_OP_MATH, CUBLAS_STATUS_INVALID_VALUE,
              "cublasSetMathMode: %d", mode);
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "cublasGetMathMode: no handle");
    *mode = handle->math;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode)
{
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "cublasSetAtomicsMode: no handle");
    handle->atomics = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
    REFUSE_IF(!handle, CUBLAS_STATUS_NOT_INITIALIZED, "cublasSetPointerMode: no handle");
    REFUSE_IF(mode != CUBLAS_POINTER_MODE_HOST, CUBLAS_STATUS_NOT_SUPPORTED,
              "device scalars are not simulated");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *version)
{
    REFUSE_IF(!version, CUBLAS_STATUS_INVALID_VALUE, "cublasGetVersion: NULL");
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int m, int n, int k, const float *alpha,
                              const float *a, int lda, const float *b, int ldb, const float *beta,
                              float *c, int ldc)
{
    return multiply(handle, {"cublasSgemm",
                             transa,
                             transb,
                             m,
                             n,
                             k,
                             1,
                             alpha,
                             beta,
                             {a, CUDA_R_32F, lda, 0},
                             {b, CUDA_R_32F, ldb, 0},
                             {c, CUDA_R_32F, ldc, 0},
                             CUBLAS_COMPUTE_32F});
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const float *alpha, const float *a, int lda,
                                         long long stride_a, const float *b, int ldb,
                                         long long stride_b, const float *beta, float *c, int ldc,
                                         long long stride_c, int batch)
{
    return multiply(handle, {"cublasSgemmStridedBatched",
                             transa,
                             transb,
                             m,
                             n,
                             k,
                             batch,
                             alpha,
                             beta,
                             {a, CUDA_R_32F, lda, stride_a},
                             {b, CUDA_R_32F, ldb, stride_b},
                             {c, CUDA_R_32F, ldc, stride_c},
                             CUBLAS_COMPUTE_32F});
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t)
{
    return multiply(handle, {"cublasGemmEx",
                             transa,
                             transb,
                             m,
                             n,
                             k,
                             1,
                             alpha,
                             beta,
                             {a, a_type, lda, 0},
                             {b, b_type, ldb, 0},
                             {c, c_type, ldc, 0},
                             compute});
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type,
                                          int lda, long long stride_a, const void *b,
                                          cudaDataType b_type, int ldb, long long stride_b,
                                          const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long stride_c, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t)
{
    return multiply(handle, {"cublasGemmStridedBatchedEx",
                             transa,
                             transb,
                             m,
                             n,
                             k,
                             batch,
                             alpha,
                             beta,
                             {a, a_type, lda, stride_a},
                             {b, b_type, ldb, stride_b},
                             {c, c_type, ldc, stride_c},
                             compute});
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    return cublas_status_name(status);
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return cublas_status_name(status);
}
