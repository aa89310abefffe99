/* preset_fields.c: the presets and the keys of their arguments. */
#include "proto/job.h"
#include "proto/job_kinds.h"
#include "proto/job_rows.h"
#include "proto/preset.h"

#define CLASSES_ROW(struct_name, count)                                                            \
    {                                                                                              \
        "num_classes", FIELD_INT, "Outputs of the last layer",                                     \
            AT(preset, struct_name.num_classes), DEFAULT(count), RANGE(1, DIM_MAX)                 \
    }

/* Bounds under which no product of them is more than a dimension may be. */
enum { WIDTH_MOST = 4096, GROUPS_MOST = 256, GROUP_WIDTH_MOST = 1024, CHANNELS_MOST = 1 << 20 };
/* The layers that these stand for are fewer than LIMIT_LAYERS. */
enum { HIDDEN_MOST = 1000, BLOCKS_MOST = 512, LSTM_MOST = 64 };

static const struct field mlp_rows[] = {
    {"hidden", FIELD_INTS, "Outputs of each hidden layer", AT(preset, mlp.hidden),
     DEFAULT("[256, 128]"), RANGE(1, DIM_MAX)},
    {"out_features", FIELD_INT, "Outputs of the last layer", AT(preset, mlp.out_features),
     DEFAULT("10"), RANGE(1, DIM_MAX)},
    {"dropout", FIELD_NUMBER, "Behind each hidden layer", AT(preset, mlp.dropout), DEFAULT("0"),
     REALS(0, 1)},
    {0},
};

static const struct field lenet_rows[] = {
    CLASSES_ROW(lenet, "10"),
    {0},
};

#define RESNET_ROWS                                                                                \
    CLASSES_ROW(resnet, "1000"),                                                                   \
        {"width",                                                                                  \
         FIELD_INT,                                                                                \
         "Channels of the first stage; torchvision's models have 64",                              \
         AT(preset, resnet.width),                                                                 \
         DEFAULT("64"),                                                                            \
         RANGE(1, WIDTH_MOST)},                                                                    \
    {                                                                                              \
        "zero_init_residual", FIELD_BOOL, "Each block begins as the identity",                     \
            AT(preset, resnet.zero_init_residual), DEFAULT("false")                                \
    }

static const struct field resnet_rows[] = {
    RESNET_ROWS,
    {0},
};

static const struct field bottleneck_rows[] = {
    RESNET_ROWS,
    {"groups", FIELD_INT, "Of the 3x3 convolutions; 32 of width_per_group 4 make a ResNeXt",
     AT(preset, resnet.groups), DEFAULT("1"), RANGE(1, GROUPS_MOST)},
    {"width_per_group", FIELD_INT, "Of the 3x3 convolutions; 128 makes a wide ResNet",
     AT(preset, resnet.width_per_group), DEFAULT("64"), RANGE(1, GROUP_WIDTH_MOST)},
    {0},
};

static const struct field lstm_lm_rows[] = {
    {"vocab_size", FIELD_INT, "Tokens that there are; 256 for text read as bytes",
     AT(preset, lstm_lm.vocab_size), DEFAULT("256"), RANGE(1, DIM_MAX)},
    {"context", FIELD_INT, "Tokens of a sample", AT(preset, lstm_lm.context), DEFAULT("64"),
     RANGE(1, DIM_MAX)},
    {"embedding_dim", FIELD_INT, "Channels of a token", AT(preset, lstm_lm.embedding_dim),
     DEFAULT("256"), RANGE(1, DIM_MAX)},
    {"hidden_size", FIELD_INT, "Of the LSTM's state", AT(preset, lstm_lm.hidden_size),
     DEFAULT("256"), RANGE(1, CHANNELS_MOST)},
    {"num_layers", FIELD_INT, "Of the LSTM", AT(preset, lstm_lm.num_layers), DEFAULT("2"),
     RANGE(1, LSTM_MOST)},
    {"dropout", FIELD_NUMBER, "Of embeddings, between the LSTM's layers, of its output",
     AT(preset, lstm_lm.dropout), DEFAULT("0"), REALS(0, 1)},
    {0},
};

static const struct field gpt_rows[] = {
    {"vocab_size", FIELD_INT, "Tokens that there are; 256 for text read as bytes",
     AT(preset, gpt.vocab_size), DEFAULT("256"), RANGE(1, DIM_MAX)},
    {"context", FIELD_INT, "Tokens that it sees", AT(preset, gpt.context), DEFAULT("128"),
     RANGE(1, DIM_MAX)},
    {"n_layer", FIELD_INT, "Blocks", AT(preset, gpt.n_layer), DEFAULT("4"), RANGE(1, BLOCKS_MOST)},
    {"n_head", FIELD_INT, "Heads of an attention", AT(preset, gpt.n_head), DEFAULT("4"),
     RANGE(1, WIDTH_MOST)},
    {"n_embd", FIELD_INT, "Channels; a multiple of n_head", AT(preset, gpt.n_embd), DEFAULT("256"),
     RANGE(1, CHANNELS_MOST)},
    {"dropout", FIELD_NUMBER, "Of embeddings, attention weights and what a block adds",
     AT(preset, gpt.dropout), DEFAULT("0"), REALS(0, 1)},
    {0},
};

static const struct object_def mlp_args = {.what = "args", .fields = mlp_rows};
static const struct object_def lstm_lm_args = {.what = "args", .fields = lstm_lm_rows};
static const struct object_def gpt_args = {.what = "args", .fields = gpt_rows};
static const struct object_def lenet_args = {.what = "args", .fields = lenet_rows};
static const struct object_def resnet_args = {.what = "args", .fields = resnet_rows};
static const struct object_def bottleneck_args = {.what = "args", .fields = bottleneck_rows};

#define ARGS_ROWS(args_object)                                                                     \
    ((const struct field[]){                                                                       \
        {"args", FIELD_OBJECT, "Its arguments", DEFAULT("{}"), .object = &args_object}, {0}})

static const struct choice presets[] = {
    {"mlp", PRESET_MLP, ARGS_ROWS(mlp_args), NULL},
    {"lenet", PRESET_LENET, ARGS_ROWS(lenet_args), NULL},
    {"resnet18", PRESET_RESNET18, ARGS_ROWS(resnet_args), NULL},
    {"resnet34", PRESET_RESNET34, ARGS_ROWS(resnet_args), NULL},
    {"resnet50", PRESET_RESNET50, ARGS_ROWS(bottleneck_args), NULL},
    {"resnet101", PRESET_RESNET101, ARGS_ROWS(bottleneck_args), NULL},
    {"resnet152", PRESET_RESNET152, ARGS_ROWS(bottleneck_args), NULL},
    {"lstm_lm", PRESET_LSTM_LM, ARGS_ROWS(lstm_lm_args), NULL},
    {"gpt", PRESET_GPT, ARGS_ROWS(gpt_args), NULL},
    {0},
};

static const struct field rows[] = {
    {"preset", FIELD_CHOICE, "A model by its name", AT(preset, name), REQUIRED, .choices = presets},
    {0},
};

static const struct object_def preset_object = {.what = "a preset", .fields = rows, .tagged = true};

static int check_mlp(const struct preset *preset, struct err *err)
{
    if (preset->mlp.hidden.n <= HIDDEN_MOST)
        return 0;
    return err_at(err, ERR_JOB_INVALID, "/args/hidden", "at most %d hidden layers, found %zu",
                  HIDDEN_MOST, preset->mlp.hidden.n);
}

static int check_gpt(const struct preset *preset, struct err *err)
{
    const struct preset_gpt *gpt = &preset->gpt;
    if (gpt->n_embd % gpt->n_head == 0)
        return 0;
    return err_at(err, ERR_JOB_INVALID, "/args/n_head",
                  "n_head must divide n_embd, found %lld heads of %lld channels",
                  (long long)gpt->n_head, (long long)gpt->n_embd);
}

static const struct {
    json_t *(*expand)(const struct preset *preset);
    int (*check)(const struct preset *preset, struct err *err); /* NULL: the rows say it all */
} functions[PRESET_COUNT] = {
    [PRESET_MLP] = {preset_mlp, check_mlp},     [PRESET_LENET] = {preset_lenet, NULL},
    [PRESET_RESNET18] = {preset_resnet, NULL},  [PRESET_RESNET34] = {preset_resnet, NULL},
    [PRESET_RESNET50] = {preset_resnet, NULL},  [PRESET_RESNET101] = {preset_resnet, NULL},
    [PRESET_RESNET152] = {preset_resnet, NULL}, [PRESET_LSTM_LM] = {preset_lstm_lm, NULL},
    [PRESET_GPT] = {preset_gpt, check_gpt},
};

static int check(const void *base, struct err *err)
{
    const struct preset *preset = base;
    return functions[preset->name].check != NULL ? functions[preset->name].check(preset, err) : 0;
}

static json_t *expand(const void *base)
{
    const struct preset *preset = base;
    return functions[preset->name].expand(preset);
}

const struct shorthand preset_shorthand = {
    .keys = &preset_object,
    .size = sizeof(struct preset),
    .stands_for = "layers",
    .brings = {"input", "inputs"},
    .check = check,
    .expand = expand,
};

int job_preset(const char *name, json_t *args, json_t **ret_model, struct err *err)
{
    static const struct object_def model = {.what = "model", .shorthand = &preset_shorthand};
    struct job_parser parser = {.err = err};
    json_t *given = args != NULL ? json_pack("{s:s, s:O}", "preset", name, "args", args)
                                 : json_pack("{s:s}", "preset", name);
    if (given == NULL)
        return job_parser_nomem(&parser);
    int rc = job_shorthand_expand(&parser, &model, given, ret_model);
    json_decref(given);
    return rc;
}
