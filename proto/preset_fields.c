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
enum { WIDTH_MOST = 4096, GROUPS_MOST = 256, GROUP_WIDTH_MOST = 1024 };

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

static const struct object_def lenet_args = {.what = "args", .fields = lenet_rows};
static const struct object_def resnet_args = {.what = "args", .fields = resnet_rows};
static const struct object_def bottleneck_args = {.what = "args", .fields = bottleneck_rows};

#define ARGS_ROWS(args_object)                                                                     \
    ((const struct field[]){                                                                       \
        {"args", FIELD_OBJECT, "Its arguments", DEFAULT("{}"), .object = &args_object}, {0}})

static const struct choice presets[] = {
    {"lenet", PRESET_LENET, ARGS_ROWS(lenet_args), NULL},
    {"resnet18", PRESET_RESNET18, ARGS_ROWS(resnet_args), NULL},
    {"resnet34", PRESET_RESNET34, ARGS_ROWS(resnet_args), NULL},
    {"resnet50", PRESET_RESNET50, ARGS_ROWS(bottleneck_args), NULL},
    {"resnet101", PRESET_RESNET101, ARGS_ROWS(bottleneck_args), NULL},
    {"resnet152", PRESET_RESNET152, ARGS_ROWS(bottleneck_args), NULL},
    {0},
};

static const struct field rows[] = {
    {"preset", FIELD_CHOICE, "A model by its name", AT(preset, name), REQUIRED, .choices = presets},
    {0},
};

static const struct object_def preset_object = {.what = "a preset", .fields = rows, .tagged = true};

static json_t *(*const functions[PRESET_COUNT])(const struct preset *preset) = {
    [PRESET_LENET] = preset_lenet,      [PRESET_RESNET18] = preset_resnet,
    [PRESET_RESNET34] = preset_resnet,  [PRESET_RESNET50] = preset_resnet,
    [PRESET_RESNET101] = preset_resnet, [PRESET_RESNET152] = preset_resnet,
};

static json_t *expand(const void *base)
{
    const struct preset *preset = base;
    return functions[preset->name](preset);
}

const struct shorthand preset_shorthand = {
    .keys = &preset_object,
    .size = sizeof(struct preset),
    .stands_for = "layers",
    .brings = {"input", "inputs"},
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
