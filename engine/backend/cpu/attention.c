/* attention.c: attention and its gradient: the core of torch.nn.MultiheadAttention.
 *
 * Query, key and value of a head are read where the projection left them, at a stride. Queries go
 * in blocks of rows: a block's products with all keys are a few hundred kilobytes of scratch that
 * each thread has for itself, so no matrix of T by T is ever in memory. Forward keeps the logarithm
 * of each row's divisor; the gradient makes the attention weights again from it. A causal block
 * leaves out the keys behind its last row.
 *
 * BF16 is widened a head at a time into the part's scratch, as a tensor of that one head, and
 * what comes out is rounded from there.
 *
 * A part of the work is a run of blocks (forward) or of heads (gradient, where keys and values
 * collect what all blocks of their head add, in order): the bits do not depend on the team.
 */
#include <math.h>
#include <oneapi/dnnl/dnnl.h>

#include "engine/backend/cpu/gemm_bf16.h"
#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/real.h"
#include "engine/backend/cpu/status.h"
#include "engine/backend/cpu/vector.h"
#include "engine/base/rng.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

enum {
    ROWS = 64,  /* queries of a block */
    KEYS = 128, /* keys of one product: what the gemm keeps in its caches */
    WORDS = 4,  /* of a Philox block */
    LINE = 16,  /* floats that a row of the scratch is aligned to */
};

struct attention {
    const struct attention_attr *attr;
    int64_t n, steps, size, head;        /* samples, T, E, E / heads */
    int64_t stride;                      /* of a row of the scratch */
    struct real qkv, gy, saved, y, gqkv; /* `at` NULL: of the other direction */
    float *lse;
    const float *saved_lse;
    float scale;
    struct rng_key key; /* of the mask */
    uint64_t first_sample;
    uint32_t threshold;
    float kept; /* factor of a weight that is kept */
    gemm_function *gemm;
    float *scratch;
    int64_t parts, part_floats;
};

/* The tensors from the first row of a head's sample on, at the head's columns. */
struct head {
    int64_t index, sample; /* index: of all samples' heads */
    int64_t size;          /* from a query to its key; 3 of them to the next row */
    const float *qkv, *gy, *saved;
    float *y, *gqkv;
};

/* A block of rows of one head, and the scratch that it is computed in. */
struct block {
    const struct head *head;
    int64_t begin, rows;
    int64_t keys;           /* that some row of it sees */
    float *weights, *grad;  /* [rows, stride] */
    float *factor;          /* [stride]: the mask of one row */
    const float *q, *k, *v; /* of the head: q of the block's first row */
};

static struct block block_of(const struct attention *a, const struct head *head, int64_t begin,
                             float *scratch)
{
    int64_t left = a->steps - begin;
    struct block b = {
        .head = head,
        .begin = begin,
        .rows = left < ROWS ? left : ROWS,
        .weights = scratch,
        .grad = scratch + ROWS * a->stride,
        .factor = scratch + 2 * ROWS * a->stride,
    };
    b.keys = a->attr->causal ? b.begin + b.rows : a->steps;
    b.q = head->qkv + b.begin * 3 * head->size;
    b.k = head->qkv + head->size;
    b.v = head->qkv + 2 * head->size;
    return b;
}

/* Keys that row i of the block sees. */
static int64_t seen(const struct attention *a, const struct block *b, int64_t i)
{
    return a->attr->causal ? b->begin + i + 1 : a->steps;
}

/* to [rows, keys] = factor * a [rows, head] times b [keys, head], transposed. */
static dnnl_status_t times_keys(const struct attention *at, const struct block *block, float factor,
                                const float *a, int64_t a_stride, const float *b, float *to)
{
    dnnl_status_t status = dnnl_success;
    for (int64_t k = 0; k < block->keys && status == dnnl_success; k += KEYS) {
        int64_t keys = block->keys - k < KEYS ? block->keys - k : KEYS;
        status =
            at->gemm('N', 'T', block->rows, keys, at->head, factor, a, a_stride,
                     b + k * 3 * block->head->size, 3 * block->head->size, 0, to + k, at->stride);
    }
    return status;
}

/* to [rows, head] = a [rows, keys] times b [keys, head]. */
static dnnl_status_t times_values(const struct attention *at, const struct block *block,
                                  const float *a, const float *b, float *to, int64_t to_stride)
{
    dnnl_status_t status = dnnl_success;
    for (int64_t k = 0; k < block->keys && status == dnnl_success; k += KEYS) {
        int64_t keys = block->keys - k < KEYS ? block->keys - k : KEYS;
        status =
            at->gemm('N', 'N', block->rows, at->head, keys, 1, a + k, at->stride,
                     b + k * 3 * block->head->size, 3 * block->head->size, k > 0, to, to_stride);
    }
    return status;
}

/* to [keys, head] += a [rows, keys], transposed, times b [rows, head]. */
static dnnl_status_t add_to_keys(const struct attention *at, const struct block *block,
                                 const float *a, const float *b, int64_t b_stride, float *to)
{
    dnnl_status_t status = dnnl_success;
    for (int64_t k = 0; k < block->keys && status == dnnl_success; k += KEYS) {
        int64_t keys = block->keys - k < KEYS ? block->keys - k : KEYS;
        status = at->gemm('T', 'N', keys, at->head, block->rows, 1, a + k, at->stride, b, b_stride,
                          1, to + k * 3 * block->head->size, 3 * block->head->size);
    }
    return status;
}

/* The mask of row i: a factor for each key. Without dropout the factors are 1 once and for all. */
static void mask_row(const struct attention *a, const struct block *b, int64_t i)
{
    if (a->attr->dropout == 0)
        return;
    uint32_t words[WORDS];
    int64_t head = b->head->index % a->attr->heads;
    uint64_t first = (uint64_t)((head * a->steps + b->begin + i) * a->steps);
    for (int64_t k = 0; k < b->keys; k++) {
        uint64_t element = first + (uint64_t)k;
        if (k == 0 || element % WORDS == 0)
            rng_block(a->key, a->first_sample + (uint64_t)b->head->sample, element / WORDS, words);
        b->factor[k] = words[element % WORDS] >> 8 >= a->threshold ? a->kept : 0;
    }
}

/* A row of products becomes attention weights, 0 from `seen` on; returns the logarithm of the
 * divisor. The weights are masked behind the softmax, as in PyTorch. */
VECTOR_CLONES static float softmax_row(float *row, const float *factor, int64_t visible,
                                       int64_t keys)
{
    float largest = vector_max(row, visible), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < visible; k++) {
        row[k] = vector_exp(row[k] - largest);
        sum += row[k];
    }
    float scale = 1 / sum;
#pragma omp simd
    for (int64_t k = 0; k < visible; k++)
        row[k] *= scale * factor[k];
    for (int64_t k = visible; k < keys; k++)
        row[k] = 0;
    return largest + logf(sum);
}

static dnnl_status_t forward_block(const struct attention *a, const struct block *b)
{
    int64_t row = 3 * b->head->size;
    dnnl_status_t status = times_keys(a, b, a->scale, b->q, row, b->k, b->weights);
    if (status != dnnl_success)
        return status;
    int64_t first = b->head->index * a->steps + b->begin;
    for (int64_t i = 0; i < b->rows; i++) {
        mask_row(a, b, i);
        float lse = softmax_row(b->weights + i * a->stride, b->factor, seen(a, b, i), b->keys);
        if (a->lse)
            a->lse[first + i] = lse;
    }
    float *y = b->head->y + b->begin * b->head->size;
    return times_values(a, b, b->weights, b->v, y, b->head->size);
}

/* Of row i: `weights` and `grad` (of the masked weights) come as products; they leave as the masked
 * weights and as the gradient of the products of query and key. delta: the sum over the row of
 * masked weight times its gradient, which is y times gy. */
VECTOR_CLONES static void grad_row(float *weights, float *grad, const float *factor, float lse,
                                   float delta, float scale, int64_t visible, int64_t keys)
{
#pragma omp simd
    for (int64_t k = 0; k < visible; k++) {
        float weight = vector_exp(weights[k] - lse);
        grad[k] = scale * weight * (factor[k] * grad[k] - delta);
        weights[k] = weight * factor[k];
    }
    for (int64_t k = visible; k < keys; k++)
        weights[k] = grad[k] = 0;
}

VECTOR_CLONES static float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static dnnl_status_t grad_block(const struct attention *a, const struct block *b)
{
    int64_t size = b->head->size, row = 3 * size, first = b->head->index * a->steps + b->begin;
    const float *gy = b->head->gy + b->begin * size, *y = b->head->saved + b->begin * size;
    float *gq = b->head->gqkv + b->begin * row, *gk = b->head->gqkv + size, *gv = gk + size;
    dnnl_status_t status = times_keys(a, b, a->scale, b->q, row, b->k, b->weights);
    if (status == dnnl_success)
        status = times_keys(a, b, 1, gy, size, b->v, b->grad);
    for (int64_t i = 0; i < b->rows && status == dnnl_success; i++) {
        mask_row(a, b, i);
        grad_row(b->weights + i * a->stride, b->grad + i * a->stride, b->factor,
                 a->saved_lse[first + i], dot(gy + i * size, y + i * size, a->head), a->scale,
                 seen(a, b, i), b->keys);
    }
    if (status == dnnl_success)
        status = times_values(a, b, b->grad, b->k, gq, row);
    if (status == dnnl_success)
        status = add_to_keys(a, b, b->grad, b->q, row, gk);
    if (status == dnnl_success)
        status = add_to_keys(a, b, b->weights, gy, size, gv);
    return status;
}

static int64_t stride_of(int64_t steps)
{
    return (steps + LINE - 1) / LINE * LINE;
}

/* Two blocks of rows, the mask of a row. */
static int64_t block_floats(int64_t steps)
{
    return (2 * ROWS + 1) * stride_of(steps);
}

/* Behind them a head of BF16: qkv, y; the gradient's qkv, gy, y, gqkv. */
static int64_t part_floats(const struct node *node)
{
    const struct attention_attr *attr = node->attr;
    const struct shape *qkv = &node->in[0]->shape;
    int64_t tensors = node->n_in > 1 ? 8 : 4, head = qkv->dim[2] / 3 / attr->heads;
    bool low = node->in[0]->dtype == DTYPE_BF16;
    return LINE + block_floats(qkv->dim[1]) + (low ? stride_of(qkv->dim[1] * tensors * head) : 0);
}

/* A part's scratch begins with a line for its status. */
static float *part_scratch(const struct attention *a, int64_t part)
{
    float *scratch = a->scratch + part * a->part_floats + LINE;
    for (int64_t k = 0; k < a->stride; k++)
        scratch[2 * ROWS * a->stride + k] = 1;
    return scratch;
}

static dnnl_status_t *part_status(const struct attention *a, int64_t part)
{
    return (dnnl_status_t *)(void *)(a->scratch + part * a->part_floats);
}

static int64_t part_begin(int64_t n, int64_t part, int64_t parts)
{
    return n * part / parts;
}

/* Where a tensor of rows of `rows` times E has the head's first row. */
static int64_t head_offset(const struct attention *a, int64_t index, int64_t rows)
{
    int64_t sample = index / a->attr->heads, head = index % a->attr->heads;
    return sample * a->steps * rows * a->size + head * a->head;
}

/* The head's `rows` columns of a tensor, widened; room for them where the tensor is not there. */
static float *widen_head(const struct attention *a, const struct real *tensor, int64_t index,
                         int64_t rows, float **room)
{
    const uint16_t *from = tensor->at;
    float *to = *room;
    *room += a->steps * rows * a->head;
    for (int64_t t = 0; from && t < a->steps; t++)
        for (int64_t r = 0; r < rows; r++)
            real_widen_all(from + head_offset(a, index, rows) + (t * rows + r) * a->size, a->head,
                           to + (t * rows + r) * a->head);
    return to;
}

/* Rows from `begin` to `end` of what is in a head's scratch. */
static void round_head(const struct attention *a, const struct real *tensor, int64_t index,
                       int64_t rows, const float *from, int64_t begin, int64_t end)
{
    uint16_t *to = (uint16_t *)tensor->at + head_offset(a, index, rows);
    for (int64_t i = begin * rows; i < end * rows; i++)
        real_round_all(from + i * a->head, a->head, to + i * a->size);
}

static float *f32_head(const struct attention *a, const struct real *tensor, int64_t index,
                       int64_t rows)
{
    return tensor->at ? (float *)tensor->at + head_offset(a, index, rows) : NULL;
}

/* `room`: the part's, where the tensors are BF16. */
static struct head head_of(const struct attention *a, int64_t index, float *room)
{
    struct head head = {
        .index = index, .sample = index / a->attr->heads, .size = a->qkv.low ? a->head : a->size};
    if (!a->qkv.low) {
        head.qkv = f32_head(a, &a->qkv, index, 3);
        head.gy = f32_head(a, &a->gy, index, 1);
        head.saved = f32_head(a, &a->saved, index, 1);
        head.y = f32_head(a, &a->y, index, 1);
        head.gqkv = f32_head(a, &a->gqkv, index, 3);
        return head;
    }
    head.qkv = widen_head(a, &a->qkv, index, 3, &room);
    if (a->y.at) {
        head.y = room;
        return head;
    }
    head.gy = widen_head(a, &a->gy, index, 1, &room);
    head.saved = widen_head(a, &a->saved, index, 1, &room);
    head.gqkv = room;
    return head;
}

static void forward_parts(int64_t begin, int64_t end, void *context)
{
    const struct attention *a = context;
    int64_t blocks = (a->steps + ROWS - 1) / ROWS, n = a->n * a->attr->heads * blocks;
    for (int64_t p = begin; p < end; p++) {
        float *scratch = part_scratch(a, p);
        struct head head = {.index = -1};
        dnnl_status_t status = dnnl_success;
        for (int64_t i = part_begin(n, p, a->parts);
             i < part_begin(n, p + 1, a->parts) && status == dnnl_success; i++) {
            if (head.index != i / blocks)
                head = head_of(a, i / blocks, scratch + block_floats(a->steps));
            struct block block = block_of(a, &head, i % blocks * ROWS, scratch);
            status = forward_block(a, &block);
            if (a->y.low)
                round_head(a, &a->y, head.index, 1, head.y, block.begin, block.begin + block.rows);
        }
        *part_status(a, p) = status;
    }
}

/* Keys and values of a head collect from all of its blocks: they begin at zero. */
static void clear_head(const struct attention *a, const struct head *head)
{
    for (int64_t t = 0; t < a->steps; t++)
        for (int64_t e = 0; e < a->head; e++) {
            head->gqkv[(3 * t + 1) * head->size + e] = 0;
            head->gqkv[(3 * t + 2) * head->size + e] = 0;
        }
}

static void grad_parts(int64_t begin, int64_t end, void *context)
{
    const struct attention *a = context;
    int64_t n = a->n * a->attr->heads;
    for (int64_t p = begin; p < end; p++) {
        float *scratch = part_scratch(a, p);
        dnnl_status_t status = dnnl_success;
        for (int64_t i = part_begin(n, p, a->parts); i < part_begin(n, p + 1, a->parts); i++) {
            struct head head = head_of(a, i, scratch + block_floats(a->steps));
            clear_head(a, &head);
            for (int64_t row = 0; row < a->steps && status == dnnl_success; row += ROWS) {
                struct block block = block_of(a, &head, row, scratch);
                status = grad_block(a, &block);
            }
            if (a->gqkv.low)
                round_head(a, &a->gqkv, i, 3, head.gqkv, 0, a->steps);
        }
        *part_status(a, p) = status;
    }
}

static struct attention attention_of(const struct own *own, const struct kernel_args *args)
{
    const struct attention_attr *attr = own->node->attr;
    const struct shape *qkv = &own->node->in[0]->shape;
    int64_t size = qkv->dim[2] / 3, floats = part_floats(own->node);
    struct rng_key layer = rng_key(args->step->seed, RNG_DROPOUT, (uint64_t)attr->layer);
    return (struct attention){
        .attr = attr,
        .n = qkv->dim[0],
        .steps = qkv->dim[1],
        .size = size,
        .head = size / attr->heads,
        .stride = stride_of(qkv->dim[1]),
        .qkv = real_of(args->in[0], own->choice->in[0]),
        .scale = (float)(1 / sqrt((double)(size / attr->heads))),
        .key = rng_subkey(layer, (uint64_t)args->step->number),
        .first_sample = (uint64_t)args->step->first_sample,
        .threshold = (uint32_t)ceil(attr->dropout * 0x1p24),
        .kept = attr->dropout < 1 ? (float)(1 / (1 - attr->dropout)) : 0,
        .gemm = own->node->in[0]->dtype == DTYPE_BF16 ? gemm_bf16_alone : dnnl_sgemm,
        .scratch = args->scratch,
        .part_floats = floats,
        .parts = (int64_t)(own->choice->scratch_bytes / sizeof(float)) / floats,
    };
}

static int run_parts(struct attention *a, void (*parts)(int64_t, int64_t, void *), struct err *err)
{
    team_for(a->parts, 1, parts, a);
    int rc = 0;
    for (int64_t p = 0; p < a->parts && rc == 0; p++)
        rc = status_check(*part_status(a, p), "gemm", err);
    return rc;
}

static int attention_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    struct attention a = attention_of(own, args);
    a.y = real_of(args->out[0], own->choice->out[0]);
    a.lse = own_out(own->node, 1) ? args->out[1] : NULL;
    return run_parts(&a, forward_parts, err);
}

static int attention_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    struct attention a = attention_of(own, args);
    a.gy = real_of(args->in[1], own->choice->in[1]);
    a.saved = real_of(args->in[2], own->choice->in[2]);
    a.saved_lse = args->in[3];
    a.gqkv = real_of(args->out[0], own->choice->out[0]);
    return run_parts(&a, grad_parts, err);
}

/* `n` units of work; a part is a thread's, but a team is not woken for little. */
static int query_parts(const struct node *node, int64_t n, struct arena *arena,
                       struct kernel_choice *ret_choice, struct err *err)
{
    const struct shape *qkv = &node->in[0]->shape;
    int64_t parts = team_size() < n ? team_size() : n;
    if (shape_count(qkv) * qkv->dim[1] < OWN_GRAIN * 16)
        parts = 1;
    int rc = own_query_plain(node, NULL, arena, ret_choice, err);
    if (rc == 0)
        ret_choice->scratch_bytes = (size_t)(parts * part_floats(node)) * sizeof(float);
    return rc;
}

static int attention_query(const struct node *node, const struct layout *const *in,
                           struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    (void)in;
    const struct attention_attr *attr = node->attr;
    const struct shape *qkv = &node->in[0]->shape;
    int64_t blocks = (qkv->dim[1] + ROWS - 1) / ROWS;
    return query_parts(node, qkv->dim[0] * attr->heads * blocks, arena, ret_choice, err);
}

static int attention_grad_query(const struct node *node, const struct layout *const *in,
                                struct arena *arena, struct kernel_choice *ret_choice,
                                struct err *err)
{
    (void)in;
    const struct attention_attr *attr = node->attr;
    return query_parts(node, node->in[0]->shape.dim[0] * attr->heads, arena, ret_choice, err);
}

const struct kernel kernel_attention = {"attention", attention_query, own_create, attention_run,
                                        own_destroy};
const struct kernel kernel_attention_grad = {"attention_grad", attention_grad_query, own_create,
                                             attention_grad_run, own_destroy};
