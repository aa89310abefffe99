/* primitive.c: see primitive.h. */
#include "engine/backend/cpu/primitive.h"

#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#include "engine/backend/cpu/status.h"

/* Scratchpads are the caller's: a run allocates nothing. */
static int new_attr(dnnl_primitive_attr_t *ret_attr, struct err *err)
{
    int rc = status_check(dnnl_primitive_attr_create(ret_attr), "attributes", err);
    if (rc)
        return rc;
    rc = status_check(dnnl_primitive_attr_set_scratchpad_mode(*ret_attr, dnnl_scratchpad_mode_user),
                      "scratchpad mode", err);
    if (rc)
        dnnl_primitive_attr_destroy(*ret_attr);
    return rc;
}

const char *primitive_impl(const_dnnl_primitive_desc_t desc)
{
    const char *name = "?";
    dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name);
    return name;
}

static bool is_reference(const_dnnl_primitive_desc_t desc)
{
    return strncmp(primitive_impl(desc), "ref", 3) == 0;
}

/* The first implementation that is not a reference one. */
static int pick(dnnl_engine_t engine, const_dnnl_op_desc_t op, const_dnnl_primitive_desc_t hint,
                const char *what, dnnl_primitive_desc_t *ret_desc, struct err *err)
{
    dnnl_primitive_attr_t attr;
    int rc = new_attr(&attr, err);
    if (rc)
        return rc;
    dnnl_primitive_desc_iterator_t iterator = NULL;
    dnnl_status_t status = dnnl_primitive_desc_iterator_create(&iterator, op, attr, engine, hint);
    dnnl_primitive_attr_destroy(attr);
    dnnl_primitive_desc_t desc = NULL;
    for (; status == dnnl_success; status = dnnl_primitive_desc_iterator_next(iterator)) {
        desc = dnnl_primitive_desc_iterator_fetch(iterator);
        if (desc && !is_reference(desc))
            break;
        dnnl_primitive_desc_destroy(desc);
        desc = NULL;
    }
    dnnl_primitive_desc_iterator_destroy(iterator);
    if (status == dnnl_iterator_ends)
        return err_set(err, ERR_DEVICE_FAILED,
                       "oneDNN has only a reference implementation of the %s", what);
    if (status != dnnl_success)
        return status_check(status, what, err);
    *ret_desc = desc;
    return 0;
}

static dnnl_memory_desc_t any_layout(const struct shape *shape, enum dtype dtype)
{
    dnnl_memory_desc_t memory;
    dnnl_dims_t dims = {0};
    for (int i = 0; i < shape->rank; i++)
        dims[i] = shape->dim[i];
    dnnl_memory_desc_init_by_tag(&memory, shape->rank, dims, layout_data_type(dtype),
                                 dnnl_format_tag_any);
    return memory;
}

static dnnl_status_t convolution_op(dnnl_prop_kind_t kind, const struct convolution *c,
                                    dnnl_convolution_desc_t *ret_op)
{
    enum dtype w_dtype = kind == dnnl_backward_weights ? DTYPE_F32 : c->dtype;
    dnnl_memory_desc_t x = any_layout(&c->x, c->dtype), y = any_layout(&c->y, c->dtype);
    dnnl_memory_desc_t w = any_layout(&c->w, w_dtype), b;
    int64_t channels = c->y.dim[1];
    dnnl_memory_desc_init_by_tag(&b, 1, (dnnl_dims_t){channels}, dnnl_f32, dnnl_a);
    dnnl_dims_t gaps = {c->dilation[0] - 1, c->dilation[1] - 1}; /* oneDNN counts from 0 */
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    const dnnl_memory_desc_t *bias = c->bias ? &b : NULL;
    if (kind == dnnl_backward_data)
        return dnnl_dilated_convolution_backward_data_desc_init(
            ret_op, direct, &x, &w, &y, c->stride, gaps, c->padding, c->padding_end);
    if (kind == dnnl_backward_weights)
        return dnnl_dilated_convolution_backward_weights_desc_init(
            ret_op, direct, &x, &w, bias, &y, c->stride, gaps, c->padding, c->padding_end);
    return dnnl_dilated_convolution_forward_desc_init(ret_op, kind, direct, &x, &w, bias, &y,
                                                      c->stride, gaps, c->padding, c->padding_end);
}

/* A backward's hint, as oneDNN wants it: the forward, whichever implementation that is. */
static int forward_hint(dnnl_engine_t engine, dnnl_prop_kind_t kind, const_dnnl_op_desc_t op,
                        dnnl_primitive_desc_t *ret_hint, struct err *err)
{
    if (kind == dnnl_forward_training || kind == dnnl_forward_inference)
        return 0;
    return status_check(dnnl_primitive_desc_create(ret_hint, op, NULL, engine, NULL),
                        "forward descriptor", err);
}

int primitive_convolution(dnnl_engine_t engine, dnnl_prop_kind_t kind,
                          const struct convolution *convolution, dnnl_primitive_desc_t *ret_desc,
                          struct err *err)
{
    dnnl_convolution_desc_t forward, op;
    dnnl_primitive_desc_t hint = NULL;
    int rc = status_check(convolution_op(dnnl_forward_training, convolution, &forward),
                          "convolution", err);
    if (rc == 0)
        rc = status_check(convolution_op(kind, convolution, &op), "convolution", err);
    if (rc == 0)
        rc = forward_hint(engine, kind, &forward, &hint, err);
    if (rc == 0)
        rc = pick(engine, &op, hint, "convolution", ret_desc, err);
    dnnl_primitive_desc_destroy(hint);
    return rc;
}

static dnnl_status_t inner_product_op(dnnl_prop_kind_t kind, const struct inner_product *p,
                                      dnnl_inner_product_desc_t *ret_op)
{
    const dnnl_memory_desc_t *bias = p->b ? &p->b->memory : NULL;
    dnnl_memory_desc_t w = p->w->memory; /* of forward, also where it is a hint */
    w.data_type = p->x->memory.data_type;
    if (kind == dnnl_backward_data)
        return dnnl_inner_product_backward_data_desc_init(ret_op, &p->x->memory, &p->w->memory,
                                                          &p->y->memory);
    if (kind == dnnl_backward_weights)
        return dnnl_inner_product_backward_weights_desc_init(ret_op, &p->x->memory, &p->w->memory,
                                                             bias, &p->y->memory);
    return dnnl_inner_product_forward_desc_init(ret_op, kind, &p->x->memory, &w, bias,
                                                &p->y->memory);
}

int primitive_inner_product(dnnl_engine_t engine, dnnl_prop_kind_t kind,
                            const struct inner_product *product, dnnl_primitive_desc_t *ret_desc,
                            struct err *err)
{
    dnnl_inner_product_desc_t forward, op;
    dnnl_primitive_desc_t hint = NULL;
    int rc = status_check(inner_product_op(dnnl_forward_training, product, &forward),
                          "inner product", err);
    if (rc == 0)
        rc = status_check(inner_product_op(kind, product, &op), "inner product", err);
    if (rc == 0)
        rc = forward_hint(engine, kind, &forward, &hint, err);
    if (rc == 0)
        rc = pick(engine, &op, hint, "inner product", ret_desc, err);
    dnnl_primitive_desc_destroy(hint);
    return rc;
}

/* The slope of swish; the others have none. */
static dnnl_status_t eltwise_op(dnnl_prop_kind_t kind, dnnl_alg_kind_t algorithm,
                                const struct layout *x, dnnl_eltwise_desc_t *ret_op)
{
    if (kind == dnnl_backward_data)
        return dnnl_eltwise_backward_desc_init(ret_op, algorithm, &x->memory, &x->memory, 1, 0);
    return dnnl_eltwise_forward_desc_init(ret_op, kind, algorithm, &x->memory, 1, 0);
}

int primitive_eltwise(dnnl_engine_t engine, dnnl_prop_kind_t kind, dnnl_alg_kind_t algorithm,
                      const struct layout *x, dnnl_primitive_desc_t *ret_desc, struct err *err)
{
    dnnl_eltwise_desc_t forward, op;
    dnnl_primitive_desc_t hint = NULL;
    int rc =
        status_check(eltwise_op(dnnl_forward_training, algorithm, x, &forward), "eltwise", err);
    if (rc == 0)
        rc = status_check(eltwise_op(kind, algorithm, x, &op), "eltwise", err);
    if (rc == 0)
        rc = forward_hint(engine, kind, &forward, &hint, err);
    if (rc == 0)
        rc = pick(engine, &op, hint, "eltwise", ret_desc, err);
    dnnl_primitive_desc_destroy(hint);
    return rc;
}

static dnnl_status_t layer_norm_op(dnnl_prop_kind_t kind, const struct layout *x,
                                   const struct layout *statistics, double eps, unsigned flags,
                                   dnnl_layer_normalization_desc_t *ret_op)
{
    if (kind == dnnl_backward || kind == dnnl_backward_data)
        return dnnl_layer_normalization_backward_desc_init(ret_op, kind, &x->memory, &x->memory,
                                                           &statistics->memory, (float)eps, flags);
    return dnnl_layer_normalization_forward_desc_init(ret_op, kind, &x->memory, &statistics->memory,
                                                      (float)eps, flags);
}

int primitive_layer_norm(dnnl_engine_t engine, dnnl_prop_kind_t kind, const struct layout *x,
                         const struct layout *statistics, double eps, unsigned flags,
                         dnnl_primitive_desc_t *ret_desc, struct err *err)
{
    dnnl_layer_normalization_desc_t forward, op;
    dnnl_primitive_desc_t hint = NULL;
    int rc = status_check(layer_norm_op(dnnl_forward_training, x, statistics, eps, flags, &forward),
                          "layer normalization", err);
    if (rc == 0)
        rc = status_check(layer_norm_op(kind, x, statistics, eps, flags, &op),
                          "layer normalization", err);
    if (rc == 0)
        rc = forward_hint(engine, kind, &forward, &hint, err);
    if (rc == 0)
        rc = pick(engine, &op, hint, "layer normalization", ret_desc, err);
    dnnl_primitive_desc_destroy(hint);
    return rc;
}

int primitive_reorder(dnnl_engine_t engine, const dnnl_memory_desc_t *from,
                      const dnnl_memory_desc_t *to, dnnl_primitive_desc_t *ret_desc,
                      struct err *err)
{
    dnnl_primitive_attr_t attr;
    int rc = new_attr(&attr, err);
    if (rc)
        return rc;
    rc = status_check(dnnl_reorder_primitive_desc_create(ret_desc, from, engine, to, engine, attr),
                      "reorder", err);
    dnnl_primitive_attr_destroy(attr);
    return rc;
}
