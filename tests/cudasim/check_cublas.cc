/* check_cublas.cc: cuBLAS' and cuBLASLt's products against PyTorch's, and what they refuse. */
#include <cmath>
#include <cublasLt.h>
#include <cublas_v2.h>

#include "tests/cudasim/library_test.hpp"

using namespace sim;

static const float one = 1, zero = 0;
static const int M = 8, N = 5, K = 6;

static doubles first(const doubles &values, size_t count)
{
    return {values.begin(), values.begin() + long(count)};
}

/* Row-major matrices are column-major ones transposed: C^T = B^T A^T. */
START_TEST(sgemm_multiplies)
{
    cublasHandle_t handle;
    EXPECT_OK(cublasCreate(&handle));
    Buffer a(floats({M, K}), first(golden("product.a"), M * K));
    Buffer b(floats({K, N}), first(golden("product.b"), K * N)), c(floats({M, N}));
    EXPECT_OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, M, K, &one, (float *)b.get(), N,
                          (float *)a.get(), K, &zero, (float *)c.get(), N));
    expect_near(c.read(), first(golden("product.plain"), M * N), "c");
    const float a_half = 0.5f, two = 2;
    EXPECT_OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, M, K, &a_half, (float *)b.get(), N,
                          (float *)a.get(), K, &two, (float *)c.get(), N));
    doubles wanted = first(golden("product.plain"), M * N);
    for (double &value : wanted)
        value *= 2.5;
    expect_near(c.read(), wanted, "c again");
    EXPECT_OK(cublasDestroy(handle));
}
END_TEST

START_TEST(batches_of_bf16)
{
    cublasHandle_t handle;
    EXPECT_OK(cublasCreate(&handle));
    Buffer a(view_packed(Type::bf16, {2, M, K}), golden("product.a"));
    Buffer b(view_packed(Type::bf16, {2, K, N}), golden("product.b")), c(floats({2, M, N}));
    EXPECT_OK(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, M, K, &one, b.get(),
                                         CUDA_R_16BF, N, K * N, a.get(), CUDA_R_16BF, K, M * K,
                                         &zero, c.get(), CUDA_R_32F, N, M * N, 2,
                                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    expect_near(c.read(), golden("product.plain"), "c");
    EXPECT_OK(cublasDestroy(handle));
}
END_TEST

START_TEST(cublas_refuses)
{
    cublasHandle_t handle;
    EXPECT_OK(cublasCreate(&handle));
    Buffer a(floats({M, K}), first(golden("product.a"), M * K)), c(floats({M, N}));
    float *p = (float *)a.get(), *q = (float *)c.get();
    EXPECT(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, p, 2, p, 2, &zero, q, 2),
           CUBLAS_STATUS_NOT_INITIALIZED);
    EXPECT(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 2, 2, &one, p, 2, p, 2, &zero, q, 3),
           CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, -1, 2, 2, &one, p, 2, p, 2, &zero, q, 2),
           CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, nullptr, p, 2, p, 2, &zero, q, 2),
           CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, p, CUDA_R_16BF, 2, p,
                        CUDA_R_32F, 2, &zero, q, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT),
           CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT(cublasSetWorkspace(handle, (char *)p + 4, 64), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_OK(cublasDestroy(handle));
}
END_TEST

/* A cuBLASLt product of column-major matrices: op(A) is the row-major golden `a` transposed twice.
 */
struct Product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t matmul;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulPreference_t preference;
};

static void set(Product *p, cublasLtMatmulDescAttributes_t attribute, const void *value,
                size_t bytes)
{
    EXPECT_OK(cublasLtMatmulDescSetAttribute(p->matmul, attribute, value, bytes));
}

/* A and B lie row-major, so they are given transposed; D lies in columns. */
static void open_product(Product *p, cudaDataType_t in, cudaDataType_t out)
{
    const int transposed = CUBLAS_OP_T;
    EXPECT_OK(cublasLtCreate(&p->handle));
    EXPECT_OK(cublasLtMatmulDescCreate(&p->matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set(p, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    set(p, CUBLASLT_MATMUL_DESC_TRANSB, &transposed, sizeof transposed);
    EXPECT_OK(cublasLtMatrixLayoutCreate(&p->a, in, K, M, K));
    EXPECT_OK(cublasLtMatrixLayoutCreate(&p->b, in, N, K, N));
    EXPECT_OK(cublasLtMatrixLayoutCreate(&p->d, out, M, N, M));
    EXPECT_OK(cublasLtMatmulPreferenceCreate(&p->preference));
}

static void close_product(Product *p)
{
    EXPECT_OK(cublasLtMatmulPreferenceDestroy(p->preference));
    EXPECT_OK(cublasLtMatrixLayoutDestroy(p->a));
    EXPECT_OK(cublasLtMatrixLayoutDestroy(p->b));
    EXPECT_OK(cublasLtMatrixLayoutDestroy(p->d));
    EXPECT_OK(cublasLtMatmulDescDestroy(p->matmul));
    EXPECT_OK(cublasLtDestroy(p->handle));
}

static cublasStatus_t multiply(Product *p, const Buffer &a, const Buffer &b, const Buffer &d)
{
    return cublasLtMatmul(p->handle, p->matmul, &one, a.get(), p->a, b.get(), p->b, &zero, d.get(),
                          p->d, d.get(), p->d, nullptr, nullptr, 0, nullptr);
}

/* A view of [M, N] as it lies in columns. */
static View columns(Type type)
{
    View view = view_packed(type, {M, N});
    view.stride[0] = 1, view.stride[1] = M;
    return view;
}

static doubles golden_first(const char *name)
{
    return first(golden(name), size_t(M * N));
}

START_TEST(epilogues_forward)
{
    static const struct {
        uint32_t epilogue;
        const char *golden;
    } rows[] = {
        {CUBLASLT_EPILOGUE_DEFAULT, "product.plain"},
        {CUBLASLT_EPILOGUE_BIAS, "product.biased"},
        {CUBLASLT_EPILOGUE_RELU_BIAS, "product.relu"},
        {CUBLASLT_EPILOGUE_GELU_BIAS, "product.gelu"},
    };
    Product p;
    open_product(&p, CUDA_R_32F, CUDA_R_32F);
    Buffer a(floats({M, K}), first(golden("product.a"), M * K));
    Buffer b(floats({K, N}), first(golden("product.b"), K * N)), d(columns(Type::f32));
    Buffer bias(floats({M}), first(golden("product.bias"), M));
    void *pointer = bias.get();
    set(&p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer, sizeof pointer);
    for (auto &row : rows) {
        set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, &row.epilogue, sizeof row.epilogue);
        EXPECT_OK(multiply(&p, a, b, d));
        expect_near(d.read(), golden_first(row.golden), row.golden);
    }
    close_product(&p);
}
END_TEST

/* Sums of PyTorch's [M, N] along rows. */
static doubles row_sums(const doubles &matrix)
{
    doubles sums(size_t(M), 0.0);
    for (size_t i = 0; i < matrix.size(); i++)
        sums[i / N] += matrix[i];
    return sums;
}

START_TEST(gelu_back)
{
    Product p;
    open_product(&p, CUDA_R_32F, CUDA_R_32F);
    Buffer a(floats({M, K}), first(golden("product.a"), M * K));
    Buffer b(floats({K, N}), first(golden("product.b"), K * N)), d(columns(Type::f32));
    Buffer aux(columns(Type::f32), golden("product.pre")), bias(floats({M}));
    const uint32_t epilogue = CUBLASLT_EPILOGUE_DGELU_BGRAD;
    const int64_t ld = M;
    void *aux_pointer = aux.get(), *bias_pointer = bias.get();
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux_pointer, sizeof aux_pointer);
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
    set(&p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias_pointer, sizeof bias_pointer);
    EXPECT_OK(multiply(&p, a, b, d));
    expect_near(d.read(), golden("product.dgelu"), "d");
    expect_near(bias.read(), row_sums(golden("product.dgelu")), "the bias' gradient");
    close_product(&p);
}
END_TEST

/* The bits that a forward product leaves are those that the backward one takes. */
START_TEST(relu_there_and_back)
{
    Product p;
    open_product(&p, CUDA_R_32F, CUDA_R_32F);
    Buffer a(floats({M, K}), first(golden("product.a"), M * K));
    Buffer b(floats({K, N}), first(golden("product.b"), K * N)), d(columns(Type::f32));
    Buffer bits(view_packed(Type::u8, {N, 16})),
        bias(floats({M}), first(golden("product.bias"), M));
    const int64_t ld = 128;
    void *aux_pointer = bits.get(), *bias_pointer = bias.get();
    uint32_t epilogue = CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux_pointer, sizeof aux_pointer);
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
    set(&p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias_pointer, sizeof bias_pointer);
    EXPECT_OK(multiply(&p, a, b, d));
    expect_near(d.read(), golden_first("product.relu"), "d");
    epilogue = CUBLASLT_EPILOGUE_DRELU;
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    EXPECT_OK(multiply(&p, a, b, d));
    doubles wanted = golden_first("product.plain"), sums = golden_first("product.biased");
    for (size_t i = 0; i < wanted.size(); i++)
        wanted[i] = sums[i] > 0 ? wanted[i] : 0;
    expect_near(d.read(), wanted, "the gradient");
    close_product(&p);
}
END_TEST

START_TEST(bias_gradients_of_inputs)
{
    Product p;
    open_product(&p, CUDA_R_32F, CUDA_R_32F);
    Buffer a(floats({M, K}), first(golden("product.a"), M * K));
    Buffer b(floats({K, N}), first(golden("product.b"), K * N)), d(columns(Type::f32));
    Buffer of_a(floats({M})), of_b(floats({N}));
    doubles wanted_a(size_t(M), 0.0), wanted_b(size_t(N), 0.0);
    for (size_t i = 0; i < size_t(M * K); i++)
        wanted_a[i / size_t(K)] += golden("product.a")[i];
    for (size_t i = 0; i < size_t(K * N); i++)
        wanted_b[i % size_t(N)] += golden("product.b")[i];
    uint32_t epilogue = CUBLASLT_EPILOGUE_BGRADA;
    void *pointer = of_a.get();
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set(&p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer, sizeof pointer);
    EXPECT_OK(multiply(&p, a, b, d));
    expect_near(of_a.read(), wanted_a, "A's");
    epilogue = CUBLASLT_EPILOGUE_BGRADB;
    pointer = of_b.get();
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set(&p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer, sizeof pointer);
    EXPECT_OK(multiply(&p, a, b, d));
    expect_near(of_b.read(), wanted_b, "B's");
    close_product(&p);
}
END_TEST

static int heuristic(Product *p, size_t workspace, uint32_t alignment,
                     cublasLtMatmulHeuristicResult_t *results)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint64_t bytes = workspace;
    EXPECT_OK(cublasLtMatmulPreferenceSetAttribute(
        p->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
    for (auto attribute : alignments)
        EXPECT_OK(cublasLtMatmulPreferenceSetAttribute(p->preference, attribute, &alignment,
                                                       sizeof alignment));
    int count = 0;
    EXPECT_OK(cublasLtMatmulAlgoGetHeuristic(p->handle, p->matmul, p->a, p->b, p->d, p->d,
                                             p->preference, 8, results, &count));
    return count;
}

/* What a heuristic offers is what the product then needs: workspace and alignment. */
START_TEST(heuristics_bind)
{
    Product p;
    open_product(&p, CUDA_R_32F, CUDA_R_32F);
    Buffer a(floats({M * K + 1}), first(golden("product.a"), M * K + 1));
    Buffer b(floats({K, N}), first(golden("product.b"), K * N)), d(columns(Type::f32));
    Buffer workspace(view_packed(Type::u8, {1 << 16}));
    cublasLtMatmulHeuristicResult_t results[8];
    int all = heuristic(&p, 1 << 16, 256, results), few = heuristic(&p, 0, 256, results);
    ck_assert_int_gt(all, few);
    ck_assert_uint_eq(results[0].workspaceSize, 0);
    ck_assert_int_eq(heuristic(&p, 0, 4, results), 1);
    heuristic(&p, 1 << 16, 256, results);
    ck_assert_uint_gt(results[0].workspaceSize, 0);
    auto run = [&](const void *from, size_t bytes) {
        return cublasLtMatmul(p.handle, p.matmul, &one, from, p.a, b.get(), p.b, &zero, d.get(),
                              p.d, d.get(), p.d, &results[0].algo, workspace.get(), bytes, nullptr);
    };
    EXPECT(run(a.get(), results[0].workspaceSize - 1), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(run((float *)a.get() + 1, 1 << 16), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_OK(run(a.get(), results[0].workspaceSize));
    expect_near(d.read(), golden_first("product.plain"), "d");
    close_product(&p);
}
END_TEST

START_TEST(cublaslt_refuses)
{
    Product p;
    open_product(&p, CUDA_R_32F, CUDA_R_32F);
    Buffer a(floats({M, K}), first(golden("product.a"), M * K));
    Buffer b(floats({K, N}), first(golden("product.b"), K * N)), d(columns(Type::f32));
    const int64_t short_ld = K - 1, ld = K;
    const int32_t row = CUBLASLT_ORDER_ROW, column = CUBLASLT_ORDER_COL;
    EXPECT_OK(cublasLtMatrixLayoutSetAttribute(p.a, CUBLASLT_MATRIX_LAYOUT_LD, &short_ld,
                                               sizeof short_ld));
    EXPECT(multiply(&p, a, b, d), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_OK(cublasLtMatrixLayoutSetAttribute(p.a, CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld));
    uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS; /* without a bias */
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    EXPECT(multiply(&p, a, b, d), CUBLAS_STATUS_INVALID_VALUE);
    epilogue = CUBLASLT_EPILOGUE_RELU; /* D in rows */
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    EXPECT_OK(
        cublasLtMatrixLayoutSetAttribute(p.d, CUBLASLT_MATRIX_LAYOUT_ORDER, &row, sizeof row));
    EXPECT(multiply(&p, a, b, d), CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_OK(cublasLtMatrixLayoutSetAttribute(p.d, CUBLASLT_MATRIX_LAYOUT_ORDER, &column,
                                               sizeof column));
    epilogue = CUBLASLT_EPILOGUE_GELU_AUX; /* a leading dimension of no multiple of 8 */
    const int64_t odd = M + 1;
    void *pointer = d.get();
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &pointer, sizeof pointer);
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &odd, sizeof odd);
    EXPECT(multiply(&p, a, b, d), CUBLAS_STATUS_INVALID_VALUE);
    int transposed = CUBLAS_OP_N; /* the sizes no longer fit */
    set(&p, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    EXPECT(multiply(&p, a, b, d), CUBLAS_STATUS_INVALID_VALUE);
    close_product(&p);
}
END_TEST

int main()
{
    return run_suite("cublas", {sgemm_multiplies, batches_of_bf16, cublas_refuses,
                                epilogues_forward, gelu_back, relu_there_and_back,
                                bias_gradients_of_inputs, heuristics_bind, cublaslt_refuses});
}
