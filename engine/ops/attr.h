/* attr.h: the attributes of every op: what a kernel must know beside shapes. Plain data. */
#ifndef ENGINE_OPS_ATTR_H
#define ENGINE_OPS_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/graph/graph.h"

struct conv2d_attr {                            /* conv2d, conv2d_input_grad, conv2d_weight_grad */
    int64_t stride[2], padding[2], dilation[2]; /* padding behind the last element: as much, or one
                                                   more where the output's size asks for it */
    int64_t groups;
};

struct batch_norm_attr { /* all ops of that name but batch_norm_statistics */
    double eps, momentum;
};

struct max_pool2d_attr { /* max_pool2d, max_pool2d_grad */
    int64_t kernel_size[2], stride[2], padding[2], dilation[2];
    int64_t padding_end[2]; /* bottom and right: more than `padding` under ceil_mode */
};

struct avg_pool2d_attr { /* avg_pool2d, avg_pool2d_grad */
    int64_t kernel_size[2], stride[2], padding[2];
    bool count_include_pad;
    int64_t divisor_override; /* 0: none */
};

struct gelu_attr { /* gelu, gelu_grad */
    bool tanh;     /* the approximation by tanh, else erf */
};

struct softmax_attr { /* softmax, log_softmax and their gradients */
    int dim;          /* >= 1 */
};

struct layer_norm_attr { /* layer_norm, layer_norm_grad */
    double eps;
    int dims; /* the last ones, that are normalised */
};

struct slice_attr { /* slice */
    int dim;        /* >= 1 */
    int64_t begin;
};

struct cat_attr { /* cat: where each input lies in the output */
    struct slice_attr part[NODE_MAX_IN];
};

struct attention_attr { /* attention, attention_grad */
    int64_t heads;
    bool causal;
    double dropout;
    int layer; /* keys the mask as dropout's does; its element is [head, query, key] */
};

struct embedding_attr {  /* embedding, embedding_weight_grad */
    int64_t padding_row; /* whose gradient is zero; -1: none */
};

enum recurrent_cell { CELL_LSTM, CELL_GRU, CELL_TANH, CELL_RELU, CELL_COUNT };
struct recurrent_attr { /* recurrent, recurrent_grad */
    enum recurrent_cell cell;
    int64_t by;               /* 1: from the first step to the last; -1: back */
    int64_t checkpoint_steps; /* the state is kept every so many; 0: at all, with the gates */
};

struct dropout_attr { /* dropout, dropout_grad */
    double p;
    int layer; /* keys the mask: rng_subkey(rng_key(seed, RNG_DROPOUT, layer), step) */
};

struct class_loss_attr {    /* cross_entropy, nll */
    double label_smoothing; /* cross_entropy */
    int64_t ignore_index;
    const double *weight; /* one a class; NULL: all 1 */
};

struct bce_attr {
    const double *pos_weight; /* of element i: [i % n_pos_weight] */
    int64_t n_pos_weight;     /* 0: all 1 */
};

struct statistics_attr { /* statistics */
    bool scaled;         /* of step->gradient_scale * x */
};

struct sgd_attr {
    double momentum, dampening, weight_decay;
    bool nesterov;
};

struct adam_attr { /* Adam, AdamW */
    double beta1, beta2, eps, weight_decay;
    bool decoupled; /* AdamW: the weights decay, not through the gradient */
};

struct rmsprop_attr {
    double alpha, eps, momentum, weight_decay;
};

struct gather_parts_attr { /* gather_parts */
    int64_t share;         /* elements in a replica's part; the last ones may have fewer */
};

struct clip_grad_norm_attr {
    double max_norm;
};

#endif
