/* attention.c: attention and its gradient: the core of torch.nn.MultiheadAttention: head by head,
 * products of all samples at once, and between them one kernel of softmax and mask.
 *
 * Query, key and value are read where the projection left them, at a stride. The products of one
 * head, [samples, steps, steps], are in the scratch; forward keeps the logarithm of each row's
 * divisor, and the gradient makes the weights again from it.
 */
#include "engine/backend/cuda/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/product.h"
#include "engine/base/rng.h"
#include "engine/ops/attr.h"

enum { FORWARD_PRODUCTS = 2, GRAD_PRODUCTS = 5 };

struct attention {
    struct own own;
    struct product products[GRAD_PRODUCTS];
};

/* Of a node: x is [N, T, 3 E]. */
struct sizes {
    int64_t samples, steps, size, head_size;
    enum dtype dtype;
    size_t element;
};

static struct sizes sizes_of(const struct node *node)
{
    const struct attention_attr *attr = node->attr;
    const struct value *x = node->in[0];
    int64_t size = x->shape.dim[2] / 3;
    return (struct sizes){x->shape.dim[0],    x->shape.dim[1], size,
                          size / attr->heads, x->dtype,        dtype_size(x->dtype)};
}

/* q, k or v of a head, or their gradient; y or gy of a head; weights of a head. */
static struct product_matrix part_of_qkv(const struct sizes *s, bool transposed)
{
    return (struct product_matrix){s->dtype, transposed, 3 * s->size, s->steps * 3 * s->size};
}

static struct product_matrix part_of_y(const struct sizes *s)
{
    return (struct product_matrix){s->dtype, false, s->size, s->steps * s->size};
}

static struct product_matrix weights(const struct sizes *s, enum dtype dtype, bool transposed)
{
    return (struct product_matrix){dtype, transposed, s->steps, s->steps * s->steps};
}

/* A head begins somewhere in a row: what is sure of its address. */
static uint32_t alignment(const struct sizes *s)
{
    uint32_t bytes = (uint32_t)s->element;
    for (int64_t n = s->head_size; n % 2 == 0 && bytes < 16; n /= 2)
        bytes *= 2;
    return bytes;
}

static struct product_shape product(const struct sizes *s, int64_t n, int64_t k,
                                    struct product_matrix a, struct product_matrix b,
                                    struct product_matrix c)
{
    return (struct product_shape){.m = s->steps,
                                  .n = n,
                                  .k = k,
                                  .batch = s->samples,
                                  .a = a,
                                  .b = b,
                                  .c = c,
                                  .alignment = alignment(s)};
}

/* [T, T] of rows by columns: q kᵀ, gy vᵀ. */
static struct product_shape scores(const struct sizes *s, struct product_matrix a)
{
    return product(s, s->steps, s->head_size, a, part_of_qkv(s, true),
                   weights(s, DTYPE_F32, false));
}

/* [T, d] of weights, or those transposed, and rows. */
static struct product_shape mixture(const struct sizes *s, bool transposed, struct product_matrix b,
                                    struct product_matrix c)
{
    return product(s, s->head_size, s->steps, weights(s, s->dtype, transposed), b, c);
}

static void attention_destroy(void *state)
{
    struct attention *attention = state;
    for (int i = 0; attention && i < GRAD_PRODUCTS; i++)
        product_done(&attention->products[i]);
    free(attention);
}

static int attention_new(struct device *device, const struct node *node,
                         const struct kernel_choice *choice, const struct product_shape *shapes,
                         int n, void **ret_state, struct err *err)
{
    struct attention *attention = calloc(1, sizeof *attention);
    if (!attention)
        return err_set(err, ERR_NOMEM, "no memory for a kernel");
    attention->own = (struct own){device, node, choice};
    int rc = 0;
    for (int i = 0; rc == 0 && i < n; i++)
        rc = product_init(&attention->products[i], device, &shapes[i], err);
    if (rc)
        attention_destroy(attention);
    else
        *ret_state = attention;
    return rc;
}

static int attention_create(struct device *device, const struct node *node,
                            const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    const struct sizes s = sizes_of(node);
    const struct product_shape shapes[FORWARD_PRODUCTS] = {
        scores(&s, part_of_qkv(&s, false)),
        mixture(&s, false, part_of_qkv(&s, false), part_of_y(&s)),
    };
    return attention_new(device, node, choice, shapes, FORWARD_PRODUCTS, ret_state, err);
}

static int attention_grad_create(struct device *device, const struct node *node,
                                 const struct kernel_choice *choice, void **ret_state,
                                 struct err *err)
{
    const struct sizes s = sizes_of(node);
    const struct product_matrix qkv = part_of_qkv(&s, false);
    const struct product_shape shapes[GRAD_PRODUCTS] = {
        scores(&s, qkv),                       /* q kᵀ */
        scores(&s, part_of_y(&s)),             /* gy vᵀ */
        mixture(&s, false, qkv, qkv),          /* gq = g k */
        mixture(&s, true, qkv, qkv),           /* gk = gᵀ q */
        mixture(&s, true, part_of_y(&s), qkv), /* gv = weightsᵀ gy */
    };
    return attention_new(device, node, choice, shapes, GRAD_PRODUCTS, ret_state, err);
}

static struct attention_launch launch_of(const struct own *own, const struct kernel_args *args,
                                         const struct sizes *s)
{
    const struct attention_attr *attr = own->node->attr;
    struct rng_key layer = rng_key(args->step->seed, RNG_DROPOUT, (uint64_t)attr->layer);
    return (struct attention_launch){
        .samples = s->samples,
        .steps = s->steps,
        .heads = attr->heads,
        .causal = attr->causal,
        .layer_key = {layer.word[0], layer.word[1]},
        .threshold = (uint32_t)ceil(attr->dropout * 0x1p24),
        .kept = attr->dropout < 1 ? (float)(1 / (1 - attr->dropout)) : 0,
        .scale = (float)(1 / sqrt((double)s->head_size)),
    };
}

/* Elements from one matrix of the scratch to the next, each aligned. */
static size_t square(const struct sizes *s)
{
    return ((size_t)(s->samples * s->steps * s->steps) + 63) / 64 * 64;
}

static char *offset(void *base, int64_t elements, const struct sizes *s)
{
    return (char *)base + (size_t)elements * s->element;
}

static int forward_head(const struct attention *attention, const struct kernel_args *args,
                        const struct attention_launch *launch, const struct sizes *s,
                        struct err *err)
{
    const struct own *own = &attention->own;
    bool bf16 = s->dtype == DTYPE_BF16;
    int64_t at = launch->head * s->head_size;
    char *q = offset(args->in[0], at, s), *k = offset(q, s->size, s), *v = offset(k, s->size, s);
    float *products = args->scratch;
    void *mixing = bf16 ? (void *)(products + square(s)) : products;
    int rc = product_run(&attention->products[0], launch->scale, q, k, NULL, products, err);
    if (rc == 0)
        rc = own_launched(launch_attention_softmax(bf16, launch, products, mixing,
                                                   own_out(own->node, 1) ? args->out[1] : NULL,
                                                   own->device->step, own->device->compute),
                          err);
    return rc ? rc
              : product_run(&attention->products[1], 1, mixing, v, NULL,
                            offset(args->out[0], at, s), err);
}

static int attention_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct attention *attention = state;
    const struct sizes s = sizes_of(attention->own.node);
    struct attention_launch launch = launch_of(&attention->own, args, &s);
    int rc = 0;
    for (launch.head = 0; rc == 0 && launch.head < launch.heads; launch.head++)
        rc = forward_head(attention, args, &launch, &s, err);
    return rc;
}

enum { QKV, GY, LSE = 3 }; /* inputs of attention_grad */

static int grad_head(const struct attention *attention, const struct kernel_args *args,
                     const struct attention_launch *launch, const struct sizes *s, struct err *err)
{
    const struct own *own = &attention->own;
    const struct product *products = attention->products;
    bool bf16 = s->dtype == DTYPE_BF16;
    int64_t at = launch->head * s->head_size;
    char *q = offset(args->in[QKV], at, s), *k = offset(q, s->size, s), *v = offset(k, s->size, s);
    char *gq = offset(args->out[0], at, s), *gk = offset(gq, s->size, s);
    char *gv = offset(gk, s->size, s), *gy = offset(args->in[GY], at, s);
    float *scored = args->scratch, *graded = scored + square(s);
    void *mixing = bf16 ? (void *)(graded + square(s)) : scored;
    void *grads = bf16 ? (void *)offset(mixing, (int64_t)square(s), s) : graded;
    int rc = product_run(&products[0], launch->scale, q, k, NULL, scored, err);
    if (rc == 0)
        rc = product_run(&products[1], 1, gy, v, NULL, graded, err);
    if (rc == 0)
        rc = own_launched(launch_attention_grad(bf16, launch, scored, graded, args->in[LSE], mixing,
                                                grads, own->device->step, own->device->compute),
                          err);
    if (rc == 0)
        rc = product_run(&products[2], 1, grads, k, NULL, gq, err);
    if (rc == 0)
        rc = product_run(&products[3], 1, grads, q, NULL, gk, err);
    return rc ? rc : product_run(&products[4], 1, mixing, gy, NULL, gv, err);
}

static int attention_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct attention *attention = state;
    const struct sizes s = sizes_of(attention->own.node);
    struct attention_launch launch = launch_of(&attention->own, args, &s);
    int rc = 0;
    for (launch.head = 0; rc == 0 && launch.head < launch.heads; launch.head++)
        rc = grad_head(attention, args, &launch, &s, err);
    return rc;
}

/* `n` matrices of products in F32, in BF16 as many of what is multiplied. */
static int query(const struct node *node, const struct layout *const *in, struct arena *arena,
                 size_t n, struct kernel_choice *ret_choice, struct err *err)
{
    const struct sizes s = sizes_of(node);
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    ret_choice->scratch_bytes =
        n * square(&s) * (sizeof(float) + (s.dtype == DTYPE_BF16 ? s.element : 0));
    strcpy(ret_choice->impl, "cublaslt");
    return 0;
}

static int attention_query(const struct node *node, const struct layout *const *in,
                           struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    return query(node, in, arena, 1, ret_choice, err);
}

static int attention_grad_query(const struct node *node, const struct layout *const *in,
                                struct arena *arena, struct kernel_choice *ret_choice,
                                struct err *err)
{
    return query(node, in, arena, 2, ret_choice, err);
}

const struct kernel kernel_attention = {"attention", attention_query, attention_create,
                                        attention_run, attention_destroy};
const struct kernel kernel_attention_grad = {"attention_grad", attention_grad_query,
                                             attention_grad_create, attention_grad_run,
                                             attention_destroy};
