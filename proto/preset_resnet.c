/* preset_resnet.c: He et al., «Deep residual learning for image recognition», 2016, as torchvision
 * builds it (torchvision/models/resnet.py): its names, its shapes, its initialisation, and the
 * stride on a bottleneck's 3x3 convolution.
 *
 * A block is a row of convolutions, each with its BatchNorm; where its output has another shape
 * than its input the shortcut goes through a 1x1 convolution («downsample»).
 */
#include <stdio.h>

#include "proto/json.h"
#include "proto/preset.h"

enum { STAGES = 4, NAME_SIZE = 64, BLOCK_CONVS = 3, BOTTLENECK_EXPANSION = 4 };

struct depth {
    int blocks[STAGES];
    bool bottleneck;
};

static const struct depth depths[PRESET_COUNT] = {
    [PRESET_RESNET18] = {{2, 2, 2, 2}, false},  [PRESET_RESNET34] = {{3, 4, 6, 3}, false},
    [PRESET_RESNET50] = {{3, 4, 6, 3}, true},   [PRESET_RESNET101] = {{3, 4, 23, 3}, true},
    [PRESET_RESNET152] = {{3, 8, 36, 3}, true},
};

struct conv {
    int64_t channels, groups;
    int kernel, stride;
};

struct block {
    char name[NAME_SIZE / 2]; /* "layer1.0" */
    char input[NAME_SIZE];    /* the layer that it begins with */
    int64_t in_channels, out_channels;
    struct conv convs[BLOCK_CONVS];
    size_t n_convs;
    bool zero_init;
};

/* "layer1.0.conv1"; returns `buf`. */
static const char *name_part(const struct block *block, const char *part, size_t number,
                             char buf[static NAME_SIZE])
{
    snprintf(buf, NAME_SIZE, "%s.%s%zu", block->name, part, number);
    return buf;
}

/* `input` NULL: the layer before. */
static json_t *add_conv(json_t *layers, const char *name, const struct conv *conv,
                        const char *input)
{
    json_t *args = json_pack("{s:I, s:i, s:i, s:i, s:I, s:b, s:{s:s, s:s, s:s}}", "out_channels",
                             (json_int_t)conv->channels, "kernel_size", conv->kernel, "stride",
                             conv->stride, "padding", conv->kernel / 2, "groups",
                             (json_int_t)conv->groups, "bias", 0, "weight_init", "type",
                             "kaiming_normal", "mode", "fan_out", "nonlinearity", "relu");
    if (input != NULL)
        args = json_put(args, "inputs", json_pack("[s]", input));
    return preset_layer(layers, "Conv2d", name, args);
}

static json_t *add_norm(json_t *layers, const char *name, bool zero_init)
{
    json_t *args = json_object();
    if (zero_init)
        args = json_put(args, "weight_init", json_pack("{s:s, s:i}", "type", "constant", "val", 0));
    return preset_layer(layers, "BatchNorm2d", name, args);
}

/* The way around the convolutions; `shortcut` (NAME_SIZE) becomes the name of what comes out. */
static json_t *add_shortcut(json_t *layers, const struct block *block, char *shortcut)
{
    int stride = block->convs[0].stride * block->convs[1].stride;
    char conv[NAME_SIZE];
    snprintf(shortcut, NAME_SIZE, "%s", block->input);
    if (stride == 1 && block->in_channels == block->out_channels)
        return layers;
    const struct conv one = {block->out_channels, 1, 1, stride};
    layers = add_conv(layers, name_part(block, "downsample.", 0, conv), &one, block->input);
    return add_norm(layers, name_part(block, "downsample.", 1, shortcut), false);
}

static json_t *add_block(json_t *layers, struct block *block)
{
    char name[NAME_SIZE], norm[NAME_SIZE], shortcut[NAME_SIZE];
    for (size_t i = 1; i <= block->n_convs; i++) {
        bool last = i == block->n_convs;
        layers = add_conv(layers, name_part(block, "conv", i, name), &block->convs[i - 1],
                          i == 1 ? block->input : NULL);
        layers = add_norm(layers, name_part(block, "bn", i, norm), last && block->zero_init);
        if (!last)
            layers = preset_layer(layers, "ReLU", name_part(block, "relu", i, name), json_object());
    }
    layers = add_shortcut(layers, block, shortcut);
    snprintf(name, sizeof name, "%s.add", block->name);
    layers = preset_layer(layers, "Add", name, json_pack("{s:[s, s]}", "inputs", norm, shortcut));
    snprintf(block->input, sizeof block->input, "%s.relu", block->name);
    return preset_layer(layers, "ReLU", block->input, json_object());
}

static int64_t at_least_1(int64_t n)
{
    return n > 1 ? n : 1;
}

/* The convolutions of a block that makes `width` channels, or 4 times as many behind a bottleneck.
 */
static void plan_block(struct block *block, const struct preset_resnet *args, bool bottleneck,
                       int64_t width, int stride)
{
    int64_t inner = at_least_1(width * args->width_per_group / 64) * args->groups;
    block->n_convs = bottleneck ? 3 : 2;
    block->out_channels = bottleneck ? width * BOTTLENECK_EXPANSION : width;
    if (bottleneck) {
        block->convs[0] = (struct conv){inner, 1, 1, 1};
        block->convs[1] = (struct conv){inner, args->groups, 3, stride};
        block->convs[2] = (struct conv){block->out_channels, 1, 1, 1};
    } else {
        block->convs[0] = (struct conv){width, 1, 3, stride};
        block->convs[1] = (struct conv){width, 1, 3, 1};
    }
}

static json_t *add_stages(json_t *layers, const struct preset_resnet *args,
                          const struct depth *depth)
{
    struct block block = {
        .input = "maxpool", .in_channels = args->width, .zero_init = args->zero_init_residual};
    for (int stage = 0; stage < STAGES; stage++)
        for (int i = 0; i < depth->blocks[stage]; i++) {
            snprintf(block.name, sizeof block.name, "layer%d.%d", stage + 1, i);
            plan_block(&block, args, depth->bottleneck, args->width << stage,
                       stage > 0 && i == 0 ? 2 : 1);
            layers = add_block(layers, &block);
            block.in_channels = block.out_channels;
        }
    return layers;
}

json_t *preset_resnet(const struct preset *preset)
{
    static const int64_t input[] = {3, 224, 224};
    const struct preset_resnet *args = &preset->resnet;
    const struct conv stem = {args->width, 1, 7, 2};
    json_t *layers = add_conv(json_array(), "conv1", &stem, NULL);
    layers = add_norm(layers, "bn1", false);
    layers = preset_layer(layers, "ReLU", "relu", json_object());
    layers =
        preset_layer(layers, "MaxPool2d", "maxpool",
                     json_pack("{s:i, s:i, s:i}", "kernel_size", 3, "stride", 2, "padding", 1));
    layers = add_stages(layers, args, &depths[preset->name]);
    layers =
        preset_layer(layers, "AdaptiveAvgPool2d", "avgpool", json_pack("{s:i}", "output_size", 1));
    layers = preset_layer(layers, "Flatten", "flatten", json_object());
    layers = preset_layer(layers, "Linear", "fc",
                          json_pack("{s:I}", "out_features", (json_int_t)args->num_classes));
    return preset_model("float32", input, 3, layers);
}
