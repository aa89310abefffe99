/* preset.h: models by name: {"preset": "resnet50", "args": {…}} stands for a whole list of layers,
 * and for an input where the document gives none (internal to proto).
 *
 * A preset is a row of `job_shorthand`'s choices with the rows of its arguments (preset_fields.c),
 * and a PURE function from these arguments to JSON (preset.c, preset_resnet.c). The parser expands
 * it before it reads the model, so that client, daemon and engine only ever see layers. Parameter
 * names and shapes of the ResNets are torchvision's.
 */
#ifndef PROTO_PRESET_H
#define PROTO_PRESET_H

#include <jansson.h>

#include "proto/job.h"
#include "proto/job_fields.h"

enum preset_name {
    PRESET_MLP,
    PRESET_LENET,
    PRESET_RESNET18,
    PRESET_RESNET34,
    PRESET_RESNET50,
    PRESET_RESNET101,
    PRESET_RESNET152,
    PRESET_LSTM_LM,
    PRESET_GPT,
    PRESET_COUNT
};

struct preset_mlp {
    struct job_ints hidden; /* features of each hidden layer */
    int64_t out_features;
    double dropout; /* behind each of them */
};

struct preset_lenet {
    int64_t num_classes;
};

struct preset_resnet {
    int64_t num_classes;
    int64_t width;                   /* channels of the first stage */
    int64_t groups, width_per_group; /* of the 3x3 convolutions in bottlenecks */
    bool zero_init_residual;
};

struct preset_lstm_lm {
    int64_t vocab_size, context, embedding_dim, hidden_size, num_layers;
    double dropout;
};

struct preset_gpt {
    int64_t vocab_size, context, n_layer, n_head, n_embd;
    double dropout;
};

struct preset {
    enum preset_name name;
    union {
        struct preset_mlp mlp;
        struct preset_lstm_lm lstm_lm;
        struct preset_gpt gpt;
        struct preset_lenet lenet;
        struct preset_resnet resnet;
    };
};

/* "preset" and "args" of struct preset, in place of the model's "layers". */
extern const struct shorthand preset_shorthand;

/* {"input": …, "layers": […]}: new references, NULL without memory. */
json_t *preset_mlp(const struct preset *preset);
json_t *preset_lenet(const struct preset *preset);
json_t *preset_resnet(const struct preset *preset);
json_t *preset_lstm_lm(const struct preset *preset);
json_t *preset_gpt(const struct preset *preset);

/* What those are made with; each takes what it is given and returns NULL without memory. */
/* `layers` and one more, whose arguments (its "inputs" among them) are `args`. */
json_t *preset_layer(json_t *layers, const char *type, const char *name, json_t *args);
/* The same for a Dropout, which there is none of where p is 0. */
json_t *preset_dropout(json_t *layers, const char *name, double p);
/* A model whose default input, of one sample, has `rank` dimensions. */
json_t *preset_model(const char *dtype, const int64_t *dims, size_t rank, json_t *layers);

#endif
