/* preset_gpt.c: Radford et al., «Language models are unsupervised multitask learners» (GPT-2),
 * 2019: a decoder that normalises before each sublayer, with learned positions and N(0, 0.02²)
 * weights; the output layer is its own. Names are those of GPT-2's code, but for the attention's
 * parameters, which are nn.MultiheadAttention's. */
#include <stdio.h>

#include "proto/json.h"
#include "proto/preset.h"

enum { NAME_SIZE = 64, EXPANSION = 4 };

/* "h.3.ln_1"; returns `buf`. */
static const char *name_in(int64_t block, const char *part, char buf[static NAME_SIZE])
{
    snprintf(buf, NAME_SIZE, "h.%d.%s", (int)block, part);
    return buf;
}

/* `args` with GPT-2's initialisation. */
static json_t *with_init(json_t *args, bool bias)
{
    args = json_put(args, "weight_init", json_pack("{s:s, s:f}", "type", "normal", "std", 0.02));
    if (bias)
        args = json_put(args, "bias_init", json_pack("{s:s, s:i}", "type", "constant", "val", 0));
    return args;
}

static json_t *add_linear(json_t *layers, const char *name, int64_t features)
{
    json_t *args = json_pack("{s:I}", "out_features", (json_int_t)features);
    return preset_layer(layers, "Linear", name, with_init(args, true));
}

static json_t *add_attention(json_t *layers, const struct preset_gpt *args, const char *name)
{
    json_t *keys = json_pack("{s:I, s:b, s:f}", "num_heads", (json_int_t)args->n_head, "causal", 1,
                             "dropout", args->dropout);
    return preset_layer(layers, "SelfAttention", name, with_init(keys, true));
}

/* x + sublayer(x): `last` is what the sublayer ends with, `stream` what it began with. */
static json_t *add_sum(json_t *layers, const char *name, const char *last, const char *stream)
{
    return preset_layer(layers, "Add", name, json_pack("{s:[s, s]}", "inputs", last, stream));
}

/* `stream` (NAME_SIZE) names what the block begins with, then what it ends with. */
static json_t *add_block(json_t *layers, const struct preset_gpt *args, int64_t block, char *stream)
{
    char name[NAME_SIZE], attention[NAME_SIZE], sum[NAME_SIZE], mlp[NAME_SIZE];
    layers = preset_layer(layers, "LayerNorm", name_in(block, "ln_1", name),
                          json_pack("{s:[s]}", "inputs", stream));
    layers = add_attention(layers, args, name_in(block, "attn", attention));
    if (args->dropout > 0)
        layers = preset_dropout(layers, name_in(block, "drop_1", attention), args->dropout);
    layers = add_sum(layers, name_in(block, "add_1", sum), attention, stream);
    layers = preset_layer(layers, "LayerNorm", name_in(block, "ln_2", name), json_object());
    layers = add_linear(layers, name_in(block, "mlp.c_fc", name), EXPANSION * args->n_embd);
    layers = preset_layer(layers, "GELU", name_in(block, "mlp.gelu", name),
                          json_pack("{s:s}", "approximate", "tanh"));
    layers = add_linear(layers, name_in(block, "mlp.c_proj", mlp), args->n_embd);
    if (args->dropout > 0)
        layers = preset_dropout(layers, name_in(block, "drop_2", mlp), args->dropout);
    return add_sum(layers, name_in(block, "add_2", stream), mlp, sum);
}

json_t *preset_gpt(const struct preset *preset)
{
    const struct preset_gpt *args = &preset->gpt;
    char stream[NAME_SIZE];
    json_t *tokens = json_pack("{s:I, s:I}", "num_embeddings", (json_int_t)args->vocab_size,
                               "embedding_dim", (json_int_t)args->n_embd);
    json_t *layers = preset_layer(json_array(), "Embedding", "wte", with_init(tokens, false));
    json_t *positions = json_pack("{s:I}", "num_embeddings", (json_int_t)args->context);
    layers = preset_layer(layers, "PositionalEmbedding", "wpe", with_init(positions, false));
    layers = preset_dropout(layers, "drop", args->dropout);
    snprintf(stream, sizeof stream, "%s", args->dropout > 0 ? "drop" : "wpe");
    for (int64_t block = 0; block < args->n_layer; block++)
        layers = add_block(layers, args, block, stream);
    layers = preset_layer(layers, "LayerNorm", "ln_f", json_object());
    json_t *head = json_pack("{s:I, s:b}", "out_features", (json_int_t)args->vocab_size, "bias", 0);
    layers = preset_layer(layers, "Linear", "lm_head", with_init(head, false));
    return preset_model("int64", &args->context, 1, layers);
}
