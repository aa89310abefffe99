/* registry.c: see registry.h. A new layer, loss or optimizer is a row here. */
#include "engine/ops/registry.h"

#include "engine/graph/fuse.h"

static const struct op_def *const ops[] = {
#define OP(name) &op_##name,
#include "engine/ops/ops.def"
#undef OP
};

static const struct op_def *const layers[LAYER_TYPE_COUNT] = {
    [LAYER_LINEAR] = &op_linear,
    [LAYER_CONV2D] = &op_conv2d,
    [LAYER_BATCHNORM1D] = &op_batch_norm,
    [LAYER_BATCHNORM2D] = &op_batch_norm,
    [LAYER_RELU] = &op_relu,
    [LAYER_MAXPOOL2D] = &op_max_pool2d,
    [LAYER_ADAPTIVEAVGPOOL2D] = &op_adaptive_avg_pool2d,
    [LAYER_FLATTEN] = &op_reshape,
    [LAYER_DROPOUT] = &op_dropout,
    [LAYER_ADD] = &op_add,
    [LAYER_GELU] = &op_gelu,
    [LAYER_SILU] = &op_silu,
    [LAYER_SIGMOID] = &op_sigmoid,
    [LAYER_TANH] = &op_tanh,
    [LAYER_SOFTMAX] = &op_softmax,
    [LAYER_LOGSOFTMAX] = &op_log_softmax,
    [LAYER_LAYERNORM] = &op_layer_norm,
    [LAYER_AVGPOOL2D] = &op_avg_pool2d,
    [LAYER_RESHAPE] = &op_reshape,
    [LAYER_MUL] = &op_mul,
    [LAYER_CAT] = &op_cat,
    [LAYER_EMBEDDING] = &op_embedding,
    [LAYER_POSITIONALEMBEDDING] = &op_positional_embedding,
    [LAYER_SELECTLAST] = &op_select_last,
    [LAYER_SELFATTENTION] = &op_attention,
    [LAYER_LSTM] = &op_recurrent,
    [LAYER_GRU] = &op_recurrent,
    [LAYER_RNN] = &op_recurrent,
};

static const struct loss_def *const losses[] = {
    [LOSS_CROSS_ENTROPY] = &loss_cross_entropy,
    [LOSS_MSE] = &loss_mse,
    [LOSS_BCE_WITH_LOGITS] = &loss_bce_with_logits,
    [LOSS_L1] = &loss_l1,
    [LOSS_NLL] = &loss_nll,
};

static const struct optimizer_def *const optimizers[] = {
    [OPTIMIZER_SGD] = &optimizer_sgd,
    [OPTIMIZER_ADAM] = &optimizer_adam,
    [OPTIMIZER_ADAMW] = &optimizer_adam,
    [OPTIMIZER_RMSPROP] = &optimizer_rmsprop,
};

static const struct op_fusion fusions[] = {
    {.norm = "batch_norm", .fused = "batch_norm_relu", .residual = 6},
    {.norm = "batch_norm_eval", .fused = "batch_norm_relu_eval", .residual = 5, .inference = true},
};

const struct op_registry op_registry = {
    .ops = ops,
    .n_ops = sizeof ops / sizeof *ops,
    .layers = layers,
    .losses = losses,
    .optimizers = optimizers,
    .fusions = fusions,
    .n_fusions = sizeof fusions / sizeof *fusions,
    .clip = clip_grad_norm_build,
    .gather_parts = gather_parts_build,
    .statistics = statistics_build,
};
