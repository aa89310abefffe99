/* attention.c: y = softmax(q kᵀ / sqrt(d)) v in each head, after torch.nn.MultiheadAttention: a
 * matrix of weights in memory, and the gradient through it step by step. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

/* One head of one sample. */
struct head {
    const struct attention_attr *attr;
    const struct step *step;
    int64_t n, h, t_size, e_size, d_size;
};

enum { Q, K, V };

/* The position of q, k or v in qkv [N, T, 3E]. */
static int64_t at(const struct head *head, int part, int64_t t, int64_t d)
{
    return ((head->n * head->t_size + t) * 3 + part) * head->e_size + head->h * head->d_size + d;
}

static int64_t at_y(const struct head *head, int64_t t, int64_t d)
{
    return (head->n * head->t_size + t) * head->e_size + head->h * head->d_size + d;
}

static double mask(const struct head *head, int64_t i, int64_t j)
{
    const struct attention_attr *attr = head->attr;
    struct rng_key key = rng_subkey(rng_key(head->step->seed, RNG_DROPOUT, (uint64_t)attr->layer),
                                    (uint64_t)head->step->number);
    uint64_t element = (uint64_t)((head->h * head->t_size + i) * head->t_size + j);
    uint32_t words[4];
    if (attr->dropout == 0)
        return 1;
    rng_block(key, (uint64_t)(head->step->first_sample + head->n), element / 4, words);
    return (double)rng_uniform(words[element % 4]) >= attr->dropout ? 1 / (1 - attr->dropout) : 0;
}

/* The weights of query i, before dropout; returns the logarithm of the divisor. */
static double weigh(const struct head *head, const double *qkv, int64_t i, double *weights)
{
    int64_t seen = head->attr->causal ? i + 1 : head->t_size;
    double sum = 0;
    memset(weights, 0, (size_t)head->t_size * sizeof *weights);
    for (int64_t j = 0; j < seen; j++) {
        double product = 0;
        for (int64_t d = 0; d < head->d_size; d++)
            product += qkv[at(head, Q, i, d)] * qkv[at(head, K, j, d)];
        weights[j] = exp(product / sqrt((double)head->d_size));
        sum += weights[j];
    }
    for (int64_t j = 0; j < seen; j++)
        weights[j] /= sum;
    return log(sum);
}

static void for_each_head(const struct node *node, const struct step *step,
                          void (*visit)(const struct head *head, double *const *in,
                                        double *const *out),
                          double *const *in, double *const *out)
{
    const struct attention_attr *attr = node->attr;
    const struct shape *qkv = &node->in[0]->shape;
    struct head head = {attr, step, 0, 0, qkv->dim[1], qkv->dim[2] / 3, 0};
    head.d_size = head.e_size / attr->heads;
    for (head.n = 0; head.n < qkv->dim[0]; head.n++)
        for (head.h = 0; head.h < attr->heads; head.h++)
            visit(&head, in, out);
}

static void forward(const struct head *head, double *const *in, double *const *out)
{
    double weights[head->t_size];
    for (int64_t i = 0; i < head->t_size; i++) {
        double lse = weigh(head, in[0], i, weights);
        if (out[1])
            out[1][(head->n * head->attr->heads + head->h) * head->t_size + i] = lse;
        for (int64_t d = 0; d < head->d_size; d++) {
            double sum = 0;
            for (int64_t j = 0; j < head->t_size; j++)
                sum += weights[j] * mask(head, i, j) * in[0][at(head, V, j, d)];
            out[0][at_y(head, i, d)] = sum;
        }
    }
}

static void backward(const struct head *head, double *const *in, double *const *out)
{
    const double *qkv = in[0], *gy = in[1];
    double weights[head->t_size], grad[head->t_size];
    for (int64_t i = 0; i < head->t_size; i++) {
        double mean = 0;
        weigh(head, qkv, i, weights);
        for (int64_t j = 0; j < head->t_size; j++) {
            grad[j] = 0;
            for (int64_t d = 0; d < head->d_size; d++) {
                double g = gy[at_y(head, i, d)] * mask(head, i, j);
                grad[j] += g * qkv[at(head, V, j, d)];
                out[0][at(head, V, j, d)] += g * weights[j];
            }
            mean += weights[j] * grad[j];
        }
        for (int64_t j = 0; j < head->t_size; j++)
            for (int64_t d = 0; d < head->d_size; d++) {
                double g = weights[j] * (grad[j] - mean) / sqrt((double)head->d_size);
                out[0][at(head, Q, i, d)] += g * qkv[at(head, K, j, d)];
                out[0][at(head, K, j, d)] += g * qkv[at(head, Q, i, d)];
            }
    }
}

void ref_attention(const struct node *node, double *const *in, double *const *out,
                   const struct step *step)
{
    for_each_head(node, step, forward, in, out);
}

void ref_attention_grad(const struct node *node, double *const *in, double *const *out,
                        const struct step *step)
{
    memset(out[0], 0, (size_t)shape_count(&node->out[0]->shape) * sizeof(double));
    for_each_head(node, step, backward, in, out);
}
