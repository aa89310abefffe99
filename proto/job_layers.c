/* job_layers.c: every key of the layers: PyTorch's arguments with PyTorch's defaults. */
#include "proto/job.h"
#include "proto/job_rows.h"

/* Arguments of PyTorch's that say nothing about the result. */
#define INPLACE_ROW                                                                                \
    {                                                                                              \
        "inplace", FIELD_FIXED, "Buffers are shared where they can be, without asking",            \
            DEFAULT("false"), LATER({"true", "layers asked to work in place"})                     \
    }

#define SPECTRAL_NORM_ROW                                                                          \
    {                                                                                              \
        "spectral_norm", FIELD_BOOL,                                                               \
            "Divide the weight by its largest singular value (torch.nn.utils.spectral_norm)",      \
            AT(job_layer, spectral_norm), DEFAULT("false")                                         \
    }

/* Of every layer that has parameters. */
#define INIT_ROWS                                                                                  \
    {"weight_init",                                                                                \
     FIELD_OBJECT,                                                                                 \
     "How its weights begin; PyTorch's way if left out",                                           \
     AT(job_layer, weight_init),                                                                   \
     .aux = offsetof(struct job_layer, has_weight_init),                                           \
     .flags = FIELD_OPTIONAL,                                                                      \
     .object = &job_layer_init_object},                                                            \
    {                                                                                              \
        "bias_init", FIELD_OBJECT, "How its biases begin; PyTorch's way if left out",              \
            AT(job_layer, bias_init), .aux = offsetof(struct job_layer, has_bias_init),            \
                                      .flags = FIELD_OPTIONAL, .object = &job_layer_init_object    \
    }

static const struct field linear_rows[] = {
    {"out_features", FIELD_INT, "Size of each output", AT(job_layer, linear.out_features), REQUIRED,
     RANGE(1, DIM_MAX)},
    {"in_features", FIELD_INT, "Inferred if left out", AT(job_layer, linear.in_features),
     RANGE(1, DIM_MAX)},
    {"bias", FIELD_BOOL, "Add a learned bias", AT(job_layer, linear.bias), DEFAULT("true")},
    SPECTRAL_NORM_ROW,
    INIT_ROWS,
    {0},
};

static const struct field conv2d_rows[] = {
    {"out_channels", FIELD_INT, "Channels of the output", AT(job_layer, conv2d.out_channels),
     REQUIRED, RANGE(1, DIM_MAX)},
    {"kernel_size", FIELD_PAIR, "Height and width", AT(job_layer, conv2d.kernel_size), REQUIRED,
     RANGE(1, DIM_MAX)},
    {"in_channels", FIELD_INT, "Inferred if left out", AT(job_layer, conv2d.in_channels),
     RANGE(1, DIM_MAX)},
    {"stride", FIELD_PAIR, "Height and width", AT(job_layer, conv2d.stride), DEFAULT("1"),
     RANGE(1, DIM_MAX)},
    {"padding", FIELD_PAIR, "Zeros around the input", AT(job_layer, conv2d.padding), DEFAULT("0"),
     RANGE(0, DIM_MAX), CHOICES(OPTION("valid", 0), OPTION("same", PADDING_SAME))},
    {"dilation", FIELD_PAIR, "Distance of the kernel's elements", AT(job_layer, conv2d.dilation),
     DEFAULT("1"), RANGE(1, DIM_MAX)},
    {"groups", FIELD_INT, "Blocks of channels that do not mix", AT(job_layer, conv2d.groups),
     DEFAULT("1"), RANGE(1, DIM_MAX)},
    {"bias", FIELD_BOOL, "Add a learned bias", AT(job_layer, conv2d.bias), DEFAULT("true")},
    {"padding_mode", FIELD_FIXED, "What the input is padded with", DEFAULT("\"zeros\""),
     LATER({"reflect", "other padding modes"}, {"replicate", "other padding modes"},
           {"circular", "other padding modes"})},
    SPECTRAL_NORM_ROW,
    INIT_ROWS,
    {0},
};

static const struct field batchnorm_rows[] = {
    {"num_features", FIELD_INT, "Inferred if left out", AT(job_layer, batchnorm.num_features),
     RANGE(1, DIM_MAX)},
    {"eps", FIELD_NUMBER, "Added to the variance", AT(job_layer, batchnorm.eps), DEFAULT("1e-5"),
     REALS(0, 1)},
    {"momentum", FIELD_NUMBER, "Weight of a batch in the running statistics",
     AT(job_layer, batchnorm.momentum), DEFAULT("0.1"), REALS(0, 1),
     LATER({"null", "cumulative running statistics"})},
    {"affine", FIELD_BOOL, "Learned scale and shift", AT(job_layer, batchnorm.affine),
     DEFAULT("true")},
    {"track_running_stats", FIELD_BOOL, "Keep running statistics for evaluation",
     AT(job_layer, batchnorm.track_running_stats), DEFAULT("true")},
    INIT_ROWS,
    {0},
};

static const struct field relu_rows[] = {
    /* and SiLU */
    INPLACE_ROW,
    {0},
};

static const struct field maxpool2d_rows[] = {
    {"kernel_size", FIELD_PAIR, "Height and width", AT(job_layer, maxpool2d.kernel_size), REQUIRED,
     RANGE(1, DIM_MAX)},
    {"stride", FIELD_PAIR, "The kernel's size if left out", AT(job_layer, maxpool2d.stride),
     COMPUTED, RANGE(1, DIM_MAX)},
    {"padding", FIELD_PAIR, "At most half the kernel", AT(job_layer, maxpool2d.padding),
     DEFAULT("0"), RANGE(0, DIM_MAX)},
    {"dilation", FIELD_PAIR, "Distance of the kernel's elements", AT(job_layer, maxpool2d.dilation),
     DEFAULT("1"), RANGE(1, DIM_MAX)},
    {"ceil_mode", FIELD_BOOL, "Round the output's size up", AT(job_layer, maxpool2d.ceil_mode),
     DEFAULT("false")},
    {"return_indices", FIELD_FIXED, "Where the maxima were", DEFAULT("false"),
     LATER({"true", "indices of maxima"})},
    {0},
};

static const struct field adaptiveavgpool2d_rows[] = {
    {"output_size", FIELD_PAIR, "Height and width", AT(job_layer, adaptiveavgpool2d.output_size),
     REQUIRED, RANGE(1, DIM_MAX), LATER({"null", "output sizes that follow the input"})},
    {0},
};

static const struct field flatten_rows[] = {
    {"start_dim", FIELD_INT, "The first that is flattened; 0 is the batch",
     AT(job_layer, flatten.start_dim), DEFAULT("1"), RANGE(1, LIMIT_RANK - 1)},
    {"end_dim", FIELD_INT, "The last; -1 is the last of all", AT(job_layer, flatten.end_dim),
     DEFAULT("-1"), RANGE(-LIMIT_RANK, LIMIT_RANK - 1)},
    {0},
};

static const struct field dropout_rows[] = {
    {"p", FIELD_NUMBER, "Share of the elements that become zero", AT(job_layer, dropout.p),
     DEFAULT("0.5"), REALS(0, 1)},
    INPLACE_ROW,
    {0},
};

static const struct field gelu_rows[] = {
    {"approximate", FIELD_CHOICE, "By erf, or by tanh", AT(job_layer, gelu.tanh),
     DEFAULT("\"none\""), CHOICES(OPTION("none", false), OPTION("tanh", true))},
    {0},
};

#define DIM_ROW(text)                                                                              \
    {                                                                                              \
        "dim", FIELD_INT, text "; 0 would be the batch, -1 is the last", AT(job_layer, dim.dim),   \
            REQUIRED, RANGE(-LIMIT_RANK, LIMIT_RANK - 1)                                           \
    }

static const struct field softmax_rows[] = {
    DIM_ROW("The dimension that adds up to 1"),
    {0},
};

static const struct field cat_rows[] = {
    DIM_ROW("The dimension in which the inputs follow each other"),
    {0},
};

static const struct field layernorm_rows[] = {
    {"normalized_shape", FIELD_SHAPE, "The last dimensions; the last one alone if left out",
     AT(job_layer, layernorm.normalized_shape), .flags = FIELD_LONE, RANGE(1, DIM_MAX)},
    {"eps", FIELD_NUMBER, "Added to the variance", AT(job_layer, layernorm.eps), DEFAULT("1e-5"),
     REALS(0, 1)},
    {"elementwise_affine", FIELD_BOOL, "Learned scale and shift",
     AT(job_layer, layernorm.elementwise_affine), DEFAULT("true")},
    {"bias", FIELD_BOOL, "The shift, where there is a scale", AT(job_layer, layernorm.bias),
     DEFAULT("true")},
    INIT_ROWS,
    {0},
};

static const struct field avgpool2d_rows[] = {
    {"kernel_size", FIELD_PAIR, "Height and width", AT(job_layer, avgpool2d.kernel_size), REQUIRED,
     RANGE(1, DIM_MAX)},
    {"stride", FIELD_PAIR, "The kernel's size if left out", AT(job_layer, avgpool2d.stride),
     COMPUTED, RANGE(1, DIM_MAX)},
    {"padding", FIELD_PAIR, "At most half the kernel", AT(job_layer, avgpool2d.padding),
     DEFAULT("0"), RANGE(0, DIM_MAX)},
    {"ceil_mode", FIELD_BOOL, "Round the output's size up", AT(job_layer, avgpool2d.ceil_mode),
     DEFAULT("false")},
    {"count_include_pad", FIELD_BOOL, "Padding counts as zeros of the window",
     AT(job_layer, avgpool2d.count_include_pad), DEFAULT("true")},
    {"divisor_override", FIELD_INT, "Instead of the window's size",
     AT(job_layer, avgpool2d.divisor_override), RANGE(1, DIM_MAX)},
    {0},
};

static const struct field reshape_rows[] = {
    {"shape", FIELD_SHAPE, "Of one sample; one -1 follows from the others",
     AT(job_layer, reshape.shape), REQUIRED, RANGE(-1, DIM_MAX)},
    {0},
};

static const struct field embedding_rows[] = {
    {"num_embeddings", FIELD_INT, "How many integers, from 0, have a vector",
     AT(job_layer, embedding.num_embeddings), REQUIRED, RANGE(1, DIM_MAX)},
    {"embedding_dim", FIELD_INT, "Size of a vector", AT(job_layer, embedding.embedding_dim),
     REQUIRED, RANGE(1, DIM_MAX)},
    {"padding_idx", FIELD_INT, "An integer whose vector begins as zero and is not trained",
     AT(job_layer, embedding.padding_idx), DEFAULT("null"), .flags = FIELD_NULL,
     RANGE(-DIM_MAX, DIM_MAX - 1)},
    {"max_norm", FIELD_FIXED, "The largest norm of a vector", DEFAULT("null"),
     LATER({"#", "bounds on the norm of vectors"})},
    {"scale_grad_by_freq", FIELD_FIXED, "Divide gradients by how often they were met",
     DEFAULT("false"), LATER({"true", "gradients scaled by frequency"})},
    {"sparse", FIELD_FIXED, "Gradients are dense", DEFAULT("false"),
     LATER({"true", "sparse gradients"})},
    SPECTRAL_NORM_ROW,
    INIT_ROWS,
    {0},
};

static const struct field positionalembedding_rows[] = {
    {"num_embeddings", FIELD_INT, "How many steps, from the first, have a vector",
     AT(job_layer, positionalembedding.num_embeddings), REQUIRED, RANGE(1, DIM_MAX)},
    INIT_ROWS,
    {0},
};

static const struct field selfattention_rows[] = {
    {"num_heads", FIELD_INT, "Divides embed_dim", AT(job_layer, selfattention.num_heads), REQUIRED,
     RANGE(1, DIM_MAX)},
    {"embed_dim", FIELD_INT, "Inferred if left out", AT(job_layer, selfattention.embed_dim),
     RANGE(1, DIM_MAX)},
    {"causal", FIELD_BOOL, "A step sees itself and those before it alone",
     AT(job_layer, selfattention.causal), DEFAULT("false")},
    {"dropout", FIELD_NUMBER, "Share of the attention weights that become zero",
     AT(job_layer, selfattention.dropout), DEFAULT("0"), REALS(0, 1)},
    {"bias", FIELD_BOOL, "Learned biases of both projections", AT(job_layer, selfattention.bias),
     DEFAULT("true")},
    {"batch_first", FIELD_FIXED, "Tensors are [N, T, E] everywhere", DEFAULT("true")},
    INIT_ROWS,
    {0},
};

/* Of LSTM, GRU, RNN: a list must follow it. */
#define RECURRENT_ROWS                                                                             \
    {"hidden_size", FIELD_INT,        "Size of the state", AT(job_layer, recurrent.hidden_size),   \
     REQUIRED,      RANGE(1, DIM_MAX)},                                                            \
        {"input_size", FIELD_INT, "Inferred if left out", AT(job_layer, recurrent.input_size),     \
         RANGE(1, DIM_MAX)},                                                                       \
        {"num_layers",                                                                             \
         FIELD_INT,                                                                                \
         "How many, one above the other",                                                          \
         AT(job_layer, recurrent.num_layers),                                                      \
         DEFAULT("1"),                                                                             \
         RANGE(1, RECURRENT_MOST)},                                                                \
        {"bias", FIELD_BOOL, "Add learned biases", AT(job_layer, recurrent.bias),                  \
         DEFAULT("true")},                                                                         \
        {"bidirectional", FIELD_BOOL, "From the last step to the first as well",                   \
         AT(job_layer, recurrent.bidirectional), DEFAULT("false")},                                \
        {"dropout",                                                                                \
         FIELD_NUMBER,                                                                             \
         "Share of the elements that become zero between two layers",                              \
         AT(job_layer, recurrent.dropout),                                                         \
         DEFAULT("0"),                                                                             \
         REALS(0, 1)},                                                                             \
        {"batch_first", FIELD_FIXED, "All tensors begin with the batch", DEFAULT("true")},         \
        {"total_length", FIELD_BOOL, "Outputs as long as the input, or as the longest sample",     \
         AT(job_layer, recurrent.total_length), DEFAULT("true")},                                  \
        {"checkpoint_steps", FIELD_INT,                                                            \
         "Keep the state every so many steps and recompute those between in backward",             \
         AT(job_layer, recurrent.checkpoint_steps), RANGE(1, DIM_MAX)},                            \
        INIT_ROWS

static const struct field lstm_rows[] = {
    RECURRENT_ROWS,
    {"proj_size", FIELD_FIXED, "Size of a projection of the state", DEFAULT("0"),
     LATER({"#", "LSTM projections"})},
    {0},
};

static const struct field gru_rows[] = {
    RECURRENT_ROWS,
    {0},
};

static const struct field rnn_rows[] = {
    RECURRENT_ROWS,
    {"nonlinearity", FIELD_CHOICE, "What bounds the state", AT(job_layer, recurrent.relu),
     DEFAULT("\"tanh\""), CHOICES(OPTION("tanh", false), OPTION("relu", true))},
    {0},
};

static const struct choice layers[] = {
    {"Linear", LAYER_LINEAR, linear_rows, NULL},
    {"Conv2d", LAYER_CONV2D, conv2d_rows, NULL},
    {"BatchNorm1d", LAYER_BATCHNORM1D, batchnorm_rows, NULL},
    {"BatchNorm2d", LAYER_BATCHNORM2D, batchnorm_rows, NULL},
    {"ReLU", LAYER_RELU, relu_rows, NULL},
    {"MaxPool2d", LAYER_MAXPOOL2D, maxpool2d_rows, NULL},
    {"AdaptiveAvgPool2d", LAYER_ADAPTIVEAVGPOOL2D, adaptiveavgpool2d_rows, NULL},
    {"Flatten", LAYER_FLATTEN, flatten_rows, NULL},
    {"Dropout", LAYER_DROPOUT, dropout_rows, NULL},
    {"Add", LAYER_ADD, NULL, NULL},
    {"GELU", LAYER_GELU, gelu_rows, NULL},
    {"SiLU", LAYER_SILU, relu_rows, NULL},
    {"Sigmoid", LAYER_SIGMOID, NULL, NULL},
    {"Tanh", LAYER_TANH, NULL, NULL},
    {"Softmax", LAYER_SOFTMAX, softmax_rows, NULL},
    {"LogSoftmax", LAYER_LOGSOFTMAX, softmax_rows, NULL},
    {"LayerNorm", LAYER_LAYERNORM, layernorm_rows, NULL},
    {"AvgPool2d", LAYER_AVGPOOL2D, avgpool2d_rows, NULL},
    {"Reshape", LAYER_RESHAPE, reshape_rows, NULL},
    {"Mul", LAYER_MUL, NULL, NULL},
    {"Cat", LAYER_CAT, cat_rows, NULL},
    {"Embedding", LAYER_EMBEDDING, embedding_rows, NULL},
    {"PositionalEmbedding", LAYER_POSITIONALEMBEDDING, positionalembedding_rows, NULL},
    {"SelectLast", LAYER_SELECTLAST, NULL, NULL},
    {"SelfAttention", LAYER_SELFATTENTION, selfattention_rows, NULL},
    {"LSTM", LAYER_LSTM, lstm_rows, NULL},
    {"GRU", LAYER_GRU, gru_rows, NULL},
    {"RNN", LAYER_RNN, rnn_rows, NULL},
    {0},
};

static const struct field layer_rows[] = {
    {"type", FIELD_CHOICE, "PyTorch's name of the layer", AT(job_layer, type), REQUIRED,
     .choices = layers},
    {"name", FIELD_LAYER_NAME, "Before the names of its parameters; its index if left out",
     AT(job_layer, name), COMPUTED, RANGE(1, LIMIT_NAME_BYTES)},
    {"inputs", FIELD_NAMES,
     "Names of earlier layers or of the model's inputs; the layer before if left out",
     .offset = offsetof(struct job_layer, inputs), .aux = offsetof(struct job_layer, n_inputs),
     RANGE(1, LIMIT_INPUTS)},
    {0},
};

const struct object_def job_layer_object = {
    .what = "a layer", .fields = layer_rows, .tagged = true};

const struct choice *job_layer_choices(void)
{
    return layers;
}
