/* gemm_bf16.h: products of matrices of floats that are rounded to BF16, their sums in float, for
 * our own kernels: oneDNN's C interface has none. */
#ifndef ENGINE_BACKEND_CPU_GEMM_BF16_H
#define ENGINE_BACKEND_CPU_GEMM_BF16_H

#include <oneapi/dnnl/dnnl_types.h>

/* C [m, n] = alpha * op(A) op(B) + beta * C, as dnnl_sgemm, on the team. Every element is summed in
 * one order, whatever the team and m and n. Needs isa_check_precision's BF16. Always succeeds. */
dnnl_status_t gemm_bf16(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                        float alpha, const float *a, dnnl_dim_t lda, const float *b, dnnl_dim_t ldb,
                        float beta, float *c, dnnl_dim_t ldc);
/* The same on the calling thread alone. */
dnnl_status_t gemm_bf16_alone(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                              float alpha, const float *a, dnnl_dim_t lda, const float *b,
                              dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc);

/* Both are of dnnl_sgemm's type. */
typedef dnnl_status_t gemm_function(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n,
                                    dnnl_dim_t k, float alpha, const float *a, dnnl_dim_t lda,
                                    const float *b, dnnl_dim_t ldb, float beta, float *c,
                                    dnnl_dim_t ldc);

#endif
