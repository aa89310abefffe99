/* primitive.h: oneDNN's primitives, each chosen as the first implementation that is not a
 * reference one.
 *
 * The caller owns what is returned until program_call. Errors: ERR_DEVICE_FAILED where there is
 * only a reference implementation: it would be a thousand times slower without a word; ERR_NOMEM.
 *
 * This file, layout.c and program.c are what differs between oneDNN 2 and 3.
 */
#ifndef ENGINE_BACKEND_CPU_PRIMITIVE_H
#define ENGINE_BACKEND_CPU_PRIMITIVE_H

#include "engine/backend/cpu/layout.h"

struct convolution {
    struct shape x, y; /* NCHW */
    struct shape w;    /* OIHW, or GOIHW where there are groups */
    enum dtype dtype;  /* of x, y and w; the gradient of w, and the bias, are F32 */
    bool bias;
    const int64_t *stride, *padding, *dilation; /* [2], PyTorch's */
    dnnl_dims_t padding_end;                    /* [2], behind the last element */
};

/* kind: dnnl_forward_training, dnnl_backward_data or dnnl_backward_weights. All layouts but the
 * bias's are the implementation's. */
int primitive_convolution(dnnl_engine_t engine, dnnl_prop_kind_t kind,
                          const struct convolution *convolution, dnnl_primitive_desc_t *ret_desc,
                          struct err *err);

struct inner_product {
    const struct layout *x, *w, *b, *y; /* [N, F], [O, F], [O] or NULL, [N, O]; the gradient of w,
                                           and b, are F32 */
};

int primitive_inner_product(dnnl_engine_t engine, dnnl_prop_kind_t kind,
                            const struct inner_product *product, dnnl_primitive_desc_t *ret_desc,
                            struct err *err);

/* kind: dnnl_forward_training, dnnl_backward_data. All tensors lie as `x`. */
int primitive_eltwise(dnnl_engine_t engine, dnnl_prop_kind_t kind, dnnl_alg_kind_t algorithm,
                      const struct layout *x, dnnl_primitive_desc_t *ret_desc, struct err *err);

/* kind: dnnl_forward_training, dnnl_forward_inference, dnnl_backward, dnnl_backward_data. Rows of
 * x [N, F], plain, each with a mean and a variance [N]; flags: dnnl_use_scale, dnnl_use_shift. */
int primitive_layer_norm(dnnl_engine_t engine, dnnl_prop_kind_t kind, const struct layout *x,
                         const struct layout *statistics, double eps, unsigned flags,
                         dnnl_primitive_desc_t *ret_desc, struct err *err);

int primitive_reorder(dnnl_engine_t engine, const dnnl_memory_desc_t *from,
                      const dnnl_memory_desc_t *to, dnnl_primitive_desc_t *ret_desc,
                      struct err *err);

/* "jit:avx512_core" */
const char *primitive_impl(const_dnnl_primitive_desc_t desc);

#endif
