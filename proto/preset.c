/* preset.c: the presets that are one plain list of layers, and what all of them are made with. */
#include "proto/preset.h"

#include <stdio.h>

#include "proto/json.h"

json_t *preset_layer(json_t *layers, const char *type, const char *name, json_t *args)
{
    json_t *layer = json_pack("{s:s, s:s}", "type", type, "name", name);
    if (layer == NULL || args == NULL || json_object_update(layer, args) != 0) {
        json_decref(layer);
        layer = NULL;
    }
    json_decref(args);
    return json_list_append(layers, layer);
}

json_t *preset_model(const char *dtype, const int64_t *dims, size_t rank, json_t *layers)
{
    json_t *shape = json_array();
    for (size_t i = 0; i < rank; i++)
        shape = json_list_append(shape, json_integer(dims[i]));
    json_t *input = json_put(json_object(), "shape", shape);
    input = json_put(input, "dtype", json_string(dtype));
    json_t *model = json_put(json_object(), "input", input);
    return json_put(model, "layers", layers);
}

json_t *preset_dropout(json_t *layers, const char *name, double p)
{
    return p > 0 ? preset_layer(layers, "Dropout", name, json_pack("{s:f}", "p", p)) : layers;
}

json_t *preset_mlp(const struct preset *preset)
{
    static const int64_t input[] = {1, 28, 28};
    const struct preset_mlp *args = &preset->mlp;
    json_t *layers = preset_layer(json_array(), "Flatten", "flatten", json_object());
    for (size_t i = 0; i <= args->hidden.n; i++) {
        bool last = i == args->hidden.n;
        char fc[32], relu[32], dropout[32];
        snprintf(fc, sizeof fc, "fc%zu", i + 1);
        snprintf(relu, sizeof relu, "relu%zu", i + 1);
        snprintf(dropout, sizeof dropout, "dropout%zu", i + 1);
        int64_t features = last ? args->out_features : args->hidden.v[i];
        layers = preset_layer(layers, "Linear", fc,
                              json_pack("{s:I}", "out_features", (json_int_t)features));
        if (last)
            break;
        layers = preset_layer(layers, "ReLU", relu, json_object());
        layers = preset_dropout(layers, dropout, args->dropout);
    }
    return preset_model("float32", input, 3, layers);
}

/* LeNet-5 with the ReLUs and maximum pooling of today: LeCun et al., «Gradient-based learning
 * applied to document recognition», 1998; names as in PyTorch's tutorials. */
json_t *preset_lenet(const struct preset *preset)
{
    static const int64_t input[] = {1, 28, 28};
    static const struct {
        const char *conv, *relu, *pool;
        int channels, padding;
    } convs[] = {{"conv1", "relu1", "pool1", 6, 2}, {"conv2", "relu2", "pool2", 16, 0}};
    const struct {
        const char *fc, *relu;
        int64_t features;
    } fcs[] = {
        {"fc1", "relu3", 120}, {"fc2", "relu4", 84}, {"fc3", NULL, preset->lenet.num_classes}};
    json_t *layers = json_array();
    for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++) {
        json_t *conv = json_pack("{s:i, s:i, s:i}", "out_channels", convs[i].channels,
                                 "kernel_size", 5, "padding", convs[i].padding);
        layers = preset_layer(layers, "Conv2d", convs[i].conv, conv);
        layers = preset_layer(layers, "ReLU", convs[i].relu, json_object());
        layers =
            preset_layer(layers, "MaxPool2d", convs[i].pool, json_pack("{s:i}", "kernel_size", 2));
    }
    layers = preset_layer(layers, "Flatten", "flatten", json_object());
    for (size_t i = 0; i < sizeof fcs / sizeof fcs[0]; i++) {
        layers = preset_layer(layers, "Linear", fcs[i].fc,
                              json_pack("{s:I}", "out_features", (json_int_t)fcs[i].features));
        if (fcs[i].relu != NULL)
            layers = preset_layer(layers, "ReLU", fcs[i].relu, json_object());
    }
    return preset_model("float32", input, 3, layers);
}

/* The language model of PyTorch's examples (word_language_model), its names and initialisation. */
json_t *preset_lstm_lm(const struct preset *preset)
{
    static const char init[] = "weight_init";
    const struct preset_lstm_lm *args = &preset->lstm_lm;
    double within = args->num_layers > 1 ? args->dropout : 0; /* there is a between */
    json_t *uniform = json_pack("{s:s, s:f, s:f}", "type", "uniform", "a", -0.1, "b", 0.1);
    json_t *encoder = json_pack("{s:I, s:I, s:O}", "num_embeddings", (json_int_t)args->vocab_size,
                                "embedding_dim", (json_int_t)args->embedding_dim, init, uniform);
    json_t *rnn = json_pack("{s:I, s:I, s:f}", "hidden_size", (json_int_t)args->hidden_size,
                            "num_layers", (json_int_t)args->num_layers, "dropout", within);
    json_t *decoder =
        json_pack("{s:I, s:O, s:{s:s, s:i}}", "out_features", (json_int_t)args->vocab_size, init,
                  uniform, "bias_init", "type", "constant", "val", 0);
    json_t *layers = preset_layer(json_array(), "Embedding", "encoder", encoder);
    layers = preset_dropout(layers, "drop", args->dropout);
    layers = preset_layer(layers, "LSTM", "rnn", rnn);
    layers = preset_dropout(layers, "drop_out", args->dropout);
    layers = preset_layer(layers, "Linear", "decoder", decoder);
    json_decref(uniform);
    return preset_model("int64", &args->context, 1, layers);
}
