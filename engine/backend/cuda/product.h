/* product.h: matrix products by cuBLASLt: C [m, n] = alpha A [m, k] B [k, n] (+ bias [n] on each
 * row), row-major, of float or BF16 operands, summed in float.
 *
 * An algorithm is chosen when the product is made, of those that add in one order; every run takes
 * the device's one workspace. */
#ifndef ENGINE_BACKEND_CUDA_PRODUCT_H
#define ENGINE_BACKEND_CUDA_PRODUCT_H

#include "engine/backend/cuda/cuda.h"

struct product_matrix {
    enum dtype dtype;
    bool transposed;      /* it lies as the transpose of what is multiplied */
    int64_t stride;       /* elements from row to row as it lies; 0: no gaps */
    int64_t batch_stride; /* from product to product; 0: no gaps */
};

struct product_shape {
    int64_t m, n, k;
    int64_t batch; /* products; 0: one */
    struct product_matrix a, b, c;
    bool bias;          /* of c's type */
    bool low;           /* floats are rounded to BF16 ahead of being multiplied */
    uint32_t alignment; /* bytes, of the matrices; 0: 16 */
};

struct product {
    struct device *device;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c; /* as cuBLASLt sees them */
    cublasLtMatmulAlgo_t algorithm;
};

/* On failure product_done still is the caller's. Errors: ERR_DEVICE_FAILED, ERR_NOMEM. */
int product_init(struct product *product, struct device *device, const struct product_shape *shape,
                 struct err *err);
void product_done(struct product *product); /* zeroed ones too */
/* Enqueues it; bias NULL where the shape has none. */
int product_run(const struct product *product, float alpha, const void *a, const void *b,
                const void *bias, void *c, struct err *err);

#endif
