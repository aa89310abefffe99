/* job_layer.h: a job's layers: a type, and a struct of its arguments, by PyTorch's names. */
#ifndef PROTO_JOB_LAYER_H
#define PROTO_JOB_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/layer_init.h"
#include "proto/limits.h"

struct job_shape {
    int64_t rank; /* 1 .. LIMIT_RANK - 1 */
    int64_t dim[LIMIT_RANK];
};

enum layer_type {
    LAYER_LINEAR,
    LAYER_CONV2D,
    LAYER_BATCHNORM1D,
    LAYER_BATCHNORM2D,
    LAYER_RELU,
    LAYER_MAXPOOL2D,
    LAYER_ADAPTIVEAVGPOOL2D,
    LAYER_FLATTEN,
    LAYER_DROPOUT,
    LAYER_ADD,
    LAYER_GELU,
    LAYER_SILU,
    LAYER_SIGMOID,
    LAYER_TANH,
    LAYER_SOFTMAX,
    LAYER_LOGSOFTMAX,
    LAYER_LAYERNORM,
    LAYER_AVGPOOL2D,
    LAYER_RESHAPE,
    LAYER_MUL,
    LAYER_CAT,
    LAYER_EMBEDDING,
    LAYER_POSITIONALEMBEDDING,
    LAYER_SELECTLAST,
    LAYER_SELFATTENTION,
    LAYER_LSTM,
    LAYER_GRU,
    LAYER_RNN,
    LAYER_TYPE_COUNT
};

struct layer_linear {
    int64_t out_features, in_features; /* in_features 0: inferred */
    bool bias;
};
enum { PADDING_SAME = -1 }; /* as much as the output needs to be as large as the input */
struct layer_conv2d {
    int64_t out_channels, in_channels; /* in_channels 0: inferred */
    int64_t kernel_size[2], stride[2], padding[2], dilation[2];
    int64_t groups;
    bool bias;
};
struct layer_batchnorm {  /* 1d and 2d */
    int64_t num_features; /* 0: inferred */
    double eps, momentum;
    bool affine, track_running_stats;
};
struct layer_maxpool2d {
    int64_t kernel_size[2], stride[2], padding[2], dilation[2]; /* stride defaults to kernel_size */
    bool ceil_mode;
};
struct layer_adaptiveavgpool2d {
    int64_t output_size[2];
};
struct layer_flatten {
    int64_t start_dim, end_dim; /* counted with the batch; end_dim may be negative */
};
struct layer_dropout {
    double p;
};
struct layer_gelu {
    bool tanh; /* approximate */
};
struct layer_dim { /* Softmax, LogSoftmax, Cat */
    int64_t dim;   /* counted with the batch, never the batch itself; may be negative */
};
struct layer_layernorm {
    struct job_shape normalized_shape; /* rank 0: the last dimension of the input */
    double eps;
    bool elementwise_affine, bias;
};
struct layer_avgpool2d {
    int64_t kernel_size[2], stride[2], padding[2]; /* stride defaults to kernel_size */
    bool ceil_mode, count_include_pad;
    int64_t divisor_override; /* 0: the size of the window */
};
struct layer_reshape {
    struct job_shape shape; /* of one sample; at most one -1, which follows from the others */
};
struct layer_embedding {
    int64_t num_embeddings, embedding_dim;
    int64_t padding_idx; /* from -num_embeddings on; INT64_MIN: none */
};
struct layer_selfattention {
    int64_t num_heads, embed_dim; /* embed_dim 0: inferred */
    double dropout;               /* of the attention weights */
    bool causal, bias;
};
struct layer_positionalembedding {
    int64_t num_embeddings;
};
struct layer_recurrent {             /* LSTM, GRU, RNN */
    int64_t hidden_size, input_size; /* input_size 0: inferred */
    int64_t num_layers;
    double dropout;                 /* between the layers */
    bool bias, bidirectional, relu; /* relu: RNN's nonlinearity */
    bool total_length;        /* outputs are as long as the input; false: as the longest sample */
    int64_t checkpoint_steps; /* 0: all states are kept */
};

struct job_layer {
    enum layer_type type;
    bool frozen, fresh; /* named by model.freeze, by model.init.fresh */
    char *name;         /* the index as a string where the document gives none; unique */
    char **inputs;      /* names of layers before this one, or of the model's inputs */
    size_t n_inputs;    /* 0: the layer before, or the model's only input for the first */
    bool spectral_norm; /* Linear, Conv2d, Embedding */
    bool has_weight_init, has_bias_init; /* else PyTorch's own */
    struct layer_init weight_init, bias_init;
    union {
        struct layer_linear linear;
        struct layer_conv2d conv2d;
        struct layer_batchnorm batchnorm;
        struct layer_maxpool2d maxpool2d;
        struct layer_adaptiveavgpool2d adaptiveavgpool2d;
        struct layer_flatten flatten;
        struct layer_dropout dropout;
        struct layer_gelu gelu;
        struct layer_dim dim;
        struct layer_layernorm layernorm;
        struct layer_avgpool2d avgpool2d;
        struct layer_reshape reshape;
        struct layer_embedding embedding;
        struct layer_positionalembedding positionalembedding;
        struct layer_selfattention selfattention;
        struct layer_recurrent recurrent;
    };
};

/* "Conv2d" for LAYER_CONV2D, and so on. */
const char *layer_type_name(enum layer_type type);

#endif
