/* linear.c: linear and its gradients: torch.nn.Linear: a matrix product each, the bias added by it.
 * The gradient of the bias is the sum of gy's rows. */
#include <stdlib.h>
#include <string.h>

#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/product.h"
#include "engine/backend/cuda/reduce.h"

struct linear {
    struct own own;
    struct product product;
};

static void linear_destroy(void *state)
{
    struct linear *linear = state;
    if (linear)
        product_done(&linear->product);
    free(linear);
}

static int linear_new(struct device *device, const struct node *node,
                      const struct kernel_choice *choice, const struct product_shape *shape,
                      void **ret_state, struct err *err)
{
    struct linear *linear = calloc(1, sizeof *linear);
    if (!linear)
        return err_set(err, ERR_NOMEM, "no memory for a kernel");
    linear->own = (struct own){device, node, choice};
    int rc = product_init(&linear->product, device, shape, err);
    if (rc)
        linear_destroy(linear);
    else
        *ret_state = linear;
    return rc;
}

static int linear_query(const struct node *node, const struct layout *const *in,
                        struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc == 0)
        strcpy(ret_choice->impl, "cublaslt");
    return rc;
}

/* y [N, O] = x [N, F] wᵀ [F, O]. A product in BF16 takes a bias in BF16. */
static int forward_query(const struct node *node, const struct layout *const *in,
                         struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = linear_query(node, in, arena, ret_choice, err);
    const struct value *bias = own_in(node, 2);
    if (rc == 0 && bias && node->out[0]->dtype == DTYPE_BF16)
        ret_choice->scratch_bytes = (size_t)shape_count(&bias->shape) * dtype_size(DTYPE_BF16);
    return rc;
}

static int forward_create(struct device *device, const struct node *node,
                          const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    const struct value *x = node->in[0], *w = node->in[1], *y = node->out[0];
    const struct product_shape shape = {
        .m = own_rows(x),
        .n = own_columns(y),
        .k = own_columns(x),
        .a = {.dtype = x->dtype},
        .b = {.dtype = w->dtype, .transposed = true},
        .c = {.dtype = y->dtype},
        .bias = own_in(node, 2) != NULL,
    };
    return linear_new(device, node, choice, &shape, ret_state, err);
}

static int forward_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct linear *linear = state;
    const struct value *bias = own_in(linear->own.node, 2);
    const void *added = bias ? args->in[2] : NULL;
    if (linear->own.choice->scratch_bytes > 0) {
        int rc = own_launched(launch_cast(true, added, args->scratch, shape_count(&bias->shape),
                                          linear->own.device->compute),
                              err);
        if (rc)
            return rc;
        added = args->scratch;
    }
    return product_run(&linear->product, 1, args->in[0], args->in[1], added, args->out[0], err);
}

/* gx [N, F] = gy [N, O] w [O, F]. */
static int input_grad_create(struct device *device, const struct node *node,
                             const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    const struct value *gy = node->in[0], *w = node->in[1], *gx = node->out[0];
    const struct product_shape shape = {
        .m = own_rows(gy),
        .n = own_columns(gx),
        .k = own_columns(gy),
        .a = {.dtype = gy->dtype},
        .b = {.dtype = w->dtype},
        .c = {.dtype = gx->dtype},
    };
    return linear_new(device, node, choice, &shape, ret_state, err);
}

static int input_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct linear *linear = state;
    return product_run(&linear->product, 1, args->in[0], args->in[1], NULL, args->out[0], err);
}

static int weight_grad_query(const struct node *node, const struct layout *const *in,
                             struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = linear_query(node, in, arena, ret_choice, err);
    const struct value *gy = node->in[1];
    if (rc == 0 && own_out(node, 1))
        ret_choice->scratch_bytes =
            (size_t)(column_parts(own_rows(gy)) * own_columns(gy)) * sizeof(float);
    return rc;
}

/* gw [O, F] = gyᵀ [O, N] x [N, F]. */
static int weight_grad_create(struct device *device, const struct node *node,
                              const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    const struct value *x = node->in[0], *gy = node->in[1], *gw = node->out[0];
    const struct product_shape shape = {
        .m = own_columns(gy),
        .n = own_columns(x),
        .k = own_rows(x),
        .a = {.dtype = gy->dtype, .transposed = true},
        .b = {.dtype = x->dtype},
        .c = {.dtype = gw->dtype},
    };
    return linear_new(device, node, choice, &shape, ret_state, err);
}

static int weight_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct linear *linear = state;
    const struct value *gy = linear->own.node->in[1];
    int rc = product_run(&linear->product, 1, args->in[1], args->in[0], NULL, args->out[0], err);
    if (rc || !own_out(linear->own.node, 1))
        return rc;
    return own_launched(launch_column_sums(gy->dtype == DTYPE_BF16, args->in[1], own_rows(gy),
                                           own_columns(gy), args->out[1], args->scratch,
                                           linear->own.device->compute),
                        err);
}

const struct kernel kernel_linear = {"linear", forward_query, forward_create, forward_run,
                                     linear_destroy};
const struct kernel kernel_linear_input_grad = {"linear_input_grad", linear_query,
                                                input_grad_create, input_grad_run, linear_destroy};
const struct kernel kernel_linear_weight_grad = {
    "linear_weight_grad", weight_grad_query, weight_grad_create, weight_grad_run, linear_destroy};
