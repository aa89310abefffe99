/* job_check.c: the rules of a job document that concern several keys.
 *
 * Each rule is a function with one sentence for a person; they run in the order of the tables below
 * and the first that is broken ends it. Nothing here opens a file or knows a shape: those rules are
 * the engine's.
 */
#include "proto/job_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "out of memory for the job");
}

static int name_layer(struct job_layer *layer, size_t index, struct err *err)
{
    char name[24];
    snprintf(name, sizeof name, "%zu", index);
    layer->name = strdup(name);
    return layer->name != NULL ? 0 : nomem(err);
}

int job_complete(const json_t *root, struct job *job, struct err *err)
{
    const json_t *init = json_object_get(json_object_get(root, "model"), "init");
    if (json_object_get(init, "seed") == NULL)
        job->model.init.seed = job->train.seed;
    for (size_t i = 0; i < job->model.n_layers; i++) {
        struct job_layer *layer = &job->model.layers[i];
        if (layer->type == LAYER_MAXPOOL2D && layer->maxpool2d.stride[0] == 0)
            memcpy(layer->maxpool2d.stride, layer->maxpool2d.kernel_size,
                   sizeof layer->maxpool2d.stride);
        if (layer->type == LAYER_AVGPOOL2D && layer->avgpool2d.stride[0] == 0)
            memcpy(layer->avgpool2d.stride, layer->avgpool2d.kernel_size,
                   sizeof layer->avgpool2d.stride);
        if (layer->name == NULL && name_layer(layer, i, err) != 0)
            return err->code;
    }
    int rc = job_mark(job, err);
    return rc != 0 ? rc : job_complete_parallel(root, job, err);
}

/* A broken rule of layer `index`, at a key of it ("" for the layer itself). */
static int __attribute__((format(printf, 4, 5)))
refuse_layer(struct err *err, size_t index, const char *key, const char *format, ...)
{
    char path[64], message[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    snprintf(path, sizeof path, "/model/layers/%zu%s%s", index, key[0] != '\0' ? "/" : "", key);
    return err_at(err, ERR_JOB_INVALID, path, "%s", message);
}

/* Layers in the order of their names, to find one quickly. */
struct named {
    const char *name;
    size_t index;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order != 0)
        return order;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int compare_name(const void *key, const void *row)
{
    return strcmp(key, ((const struct named *)row)->name);
}

static int check_unique(const struct named *named, size_t n, struct err *err)
{
    for (size_t i = 1; i < n; i++)
        if (strcmp(named[i - 1].name, named[i].name) == 0)
            return refuse_layer(err, named[i].index, "name",
                                "layer %zu has the name \"%.128s\" already", named[i - 1].index,
                                named[i].name);
    return 0;
}

static const char allowed_inputs[] =
    "allowed are the names of earlier layers and of the model's inputs";

static int check_inputs(const struct job *job, size_t index, const struct named *named,
                        struct err *err)
{
    const struct job_layer *layer = &job->model.layers[index];
    if (index == 0 && layer->n_inputs == 0 && job->model.n_inputs > 1)
        return refuse_layer(err, index, "",
                            "the model has %zu inputs: the first layer needs \"inputs\" that say "
                            "which it takes",
                            job->model.n_inputs);
    if (job_find_input(job, layer->name) != NULL)
        return refuse_layer(err, index, "name", "an input has the name \"%.128s\" already",
                            layer->name);
    for (size_t i = 0; i < layer->n_inputs; i++) {
        const char *name = layer->inputs[i];
        char key[48];
        snprintf(key, sizeof key, "inputs/%zu", i);
        if (job_find_input(job, name) != NULL)
            continue;
        const struct named *found =
            bsearch(name, named, job->model.n_layers, sizeof named[0], compare_name);
        if (found == NULL)
            return refuse_layer(err, index, key, "no layer has the name \"%.128s\"; %s", name,
                                allowed_inputs);
        if (found->index >= index)
            return refuse_layer(err, index, key,
                                "layer \"%.128s\" does not come before this one; %s", name,
                                allowed_inputs);
    }
    return 0;
}

static int check_names(const struct job *job, struct err *err)
{
    size_t n = job->model.n_layers;
    struct named *named = calloc(n, sizeof *named);
    if (named == NULL)
        return nomem(err);
    for (size_t i = 0; i < n; i++)
        named[i] = (struct named){job->model.layers[i].name, i};
    qsort(named, n, sizeof named[0], compare_named);
    int rc = check_unique(named, n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = check_inputs(job, i, named, err);
    free(named);
    return rc;
}

static int check_one_input(const struct job_layer *layer, size_t index, struct err *err)
{
    if (layer->n_inputs <= 1)
        return 0;
    return refuse_layer(err, index, "inputs", "%s takes one input, found %zu",
                        layer_type_name(layer->type), layer->n_inputs);
}

static int check_conv2d(const struct job_layer *layer, size_t index, struct err *err)
{
    const struct layer_conv2d *conv = &layer->conv2d;
    if (conv->out_channels % conv->groups != 0)
        return refuse_layer(err, index, "groups",
                            "groups must divide out_channels, found %lld groups of %lld channels",
                            (long long)conv->groups, (long long)conv->out_channels);
    if (conv->padding[0] == PADDING_SAME && (conv->stride[0] != 1 || conv->stride[1] != 1))
        return refuse_layer(err, index, "padding",
                            "padding \"same\" needs a stride of 1, found %lld and %lld",
                            (long long)conv->stride[0], (long long)conv->stride[1]);
    if (conv->in_channels % conv->groups != 0)
        return refuse_layer(err, index, "groups",
                            "groups must divide in_channels, found %lld groups of %lld channels",
                            (long long)conv->groups, (long long)conv->in_channels);
    return check_one_input(layer, index, err);
}

static int check_pool_padding(const struct job_layer *layer, size_t index, const int64_t *padding,
                              const int64_t *kernel_size, struct err *err)
{
    for (int i = 0; i < 2; i++)
        if (padding[i] > kernel_size[i] / 2)
            return refuse_layer(err, index, "padding",
                                "padding must be at most half of kernel_size, found %lld for %lld",
                                (long long)padding[i], (long long)kernel_size[i]);
    return check_one_input(layer, index, err);
}

static int check_maxpool2d(const struct job_layer *layer, size_t index, struct err *err)
{
    return check_pool_padding(layer, index, layer->maxpool2d.padding, layer->maxpool2d.kernel_size,
                              err);
}

static int check_avgpool2d(const struct job_layer *layer, size_t index, struct err *err)
{
    return check_pool_padding(layer, index, layer->avgpool2d.padding, layer->avgpool2d.kernel_size,
                              err);
}

static int check_several(const struct job_layer *layer, size_t index, struct err *err)
{
    if (layer->n_inputs >= 2)
        return 0;
    return refuse_layer(err, index, layer->n_inputs == 0 ? "" : "inputs",
                        "%s needs \"inputs\": at least two names of layers, found %zu",
                        layer_type_name(layer->type), layer->n_inputs);
}

/* Samples are parted over devices, so no layer may mix them. */
static int check_dim(const struct job_layer *layer, size_t index, struct err *err)
{
    if (layer->dim.dim != 0)
        return 0;
    return refuse_layer(err, index, "dim", "dim 0 is the batch, whose samples no layer mixes");
}

static int check_softmax(const struct job_layer *layer, size_t index, struct err *err)
{
    int rc = check_dim(layer, index, err);
    return rc != 0 ? rc : check_one_input(layer, index, err);
}

static int check_cat(const struct job_layer *layer, size_t index, struct err *err)
{
    int rc = check_dim(layer, index, err);
    return rc != 0 ? rc : check_several(layer, index, err);
}

static int check_reshape(const struct job_layer *layer, size_t index, struct err *err)
{
    const struct job_shape *shape = &layer->reshape.shape;
    int open = 0;
    for (int64_t i = 0; i < shape->rank; i++) {
        char key[32];
        snprintf(key, sizeof key, "shape/%d", (int)i);
        if (shape->dim[i] == 0)
            return refuse_layer(err, index, key, "a size must be at least 1, or -1, found 0");
        open += shape->dim[i] < 0;
        if (open > 1)
            return refuse_layer(err, index, key, "only one size can be -1, found a second");
    }
    return check_one_input(layer, index, err);
}

static int check_embedding(const struct job_layer *layer, size_t index, struct err *err)
{
    int64_t n = layer->embedding.num_embeddings, padding = layer->embedding.padding_idx;
    if (padding != INT64_MIN && (padding < -n || padding >= n))
        return refuse_layer(err, index, "padding_idx",
                            "padding_idx must be from -%lld to %lld, found %lld", (long long)n,
                            (long long)n - 1, (long long)padding);
    return check_one_input(layer, index, err);
}

static int check_selfattention(const struct job_layer *layer, size_t index, struct err *err)
{
    const struct layer_selfattention *attention = &layer->selfattention;
    if (attention->embed_dim % attention->num_heads != 0)
        return refuse_layer(err, index, "num_heads",
                            "num_heads must divide embed_dim, found %lld heads of %lld",
                            (long long)attention->num_heads, (long long)attention->embed_dim);
    return check_one_input(layer, index, err);
}

/* NULL: check_one_input. */
static int (*const layer_checks[LAYER_TYPE_COUNT])(const struct job_layer *layer, size_t index,
                                                   struct err *err) = {
    [LAYER_CONV2D] = check_conv2d,
    [LAYER_MAXPOOL2D] = check_maxpool2d,
    [LAYER_AVGPOOL2D] = check_avgpool2d,
    [LAYER_ADD] = check_several,
    [LAYER_MUL] = check_several,
    [LAYER_CAT] = check_cat,
    [LAYER_SOFTMAX] = check_softmax,
    [LAYER_LOGSOFTMAX] = check_softmax,
    [LAYER_RESHAPE] = check_reshape,
    [LAYER_EMBEDDING] = check_embedding,
    [LAYER_SELFATTENTION] = check_selfattention,
};

static int check_layers(const struct job *job, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < job->model.n_layers && rc == 0; i++) {
        const struct job_layer *layer = &job->model.layers[i];
        rc = layer_checks[layer->type] != NULL ? layer_checks[layer->type](layer, i, err)
                                               : check_one_input(layer, i, err);
    }
    return rc;
}

static int check_optimizer(const struct job *job, struct err *err)
{
    const struct job_optimizer *o = &job->optimizer;
    if (o->nesterov && (o->momentum <= 0 || o->dampening != 0))
        return err_at(err, ERR_JOB_INVALID, "/optimizer/nesterov",
                      "nesterov needs momentum above 0 and no dampening, found momentum %g and "
                      "dampening %g",
                      o->momentum, o->dampening);
    return 0;
}

/* What only training needs, and what only given weights can do. */
static int check_mode(const struct job *job, struct err *err)
{
    const struct job_train *train = &job->train;
    bool epochs = train->epochs > 0, max_steps = train->max_steps > 0;
    if (!job_trains(job) && job->model.init.weights == NULL)
        return err_at(err, ERR_JOB_INVALID, "/model/init",
                      "this mode measures given weights: \"init\" needs \"weights\"");
    if (!job_trains(job))
        return 0;
    if (train->mode == MODE_TUNE && job->parallel.mode != PARALLEL_STAGES)
        return err_at(err, ERR_JOB_INVALID, "/parallel/mode",
                      "only a job of mode \"stages\" has something to tune");
    if (train->mode == MODE_TUNE && train->accumulate > 1)
        return err_at(err, ERR_JOB_UNSUPPORTED, "/train/accumulate",
                      "tuning steps of several batches is not in this version: allowed is 1");
    if (job->loss.reduction == REDUCTION_NONE)
        return err_at(err, ERR_JOB_INVALID, "/loss/reduction",
                      "training needs one loss: \"mean\" or \"sum\"; \"none\" is for the modes "
                      "\"evaluate\" and \"predict\"");
    if (epochs == max_steps)
        return err_at(err, ERR_JOB_INVALID, "/train",
                      "train needs \"epochs\" or \"max_steps\", and not both; found %s",
                      epochs ? "both" : "neither");
    if (train->has_early_stop &&
        (!job->data.has_validation || train->validate_every.unit == EVERY_NEVER))
        return err_at(err, ERR_JOB_INVALID, "/train/early_stop",
                      "early_stop needs validations: \"validation\" data, and a \"validate_every\" "
                      "that is not \"never\"");
    if (!job->has_optimizer)
        return err_at(err, ERR_JOB_INVALID, "", "a job that trains needs \"optimizer\"");
    return 0;
}

static const struct job_layer *find_layer(const struct job *job, const char *name)
{
    for (size_t i = 0; i < job->model.n_layers; i++)
        if (strcmp(job->model.layers[i].name, name) == 0)
            return &job->model.layers[i];
    return NULL;
}

static int check_segments(const struct job *job, struct err *err)
{
    const struct job_segments *segments = &job->train.checkpoint_activations;
    for (size_t i = 0; i < segments->n; i++) {
        char path[64];
        if (find_layer(job, segments->names[i]) != NULL)
            continue;
        snprintf(path, sizeof path, "/train/checkpoint_activations/%zu", i);
        return err_at(err, ERR_JOB_INVALID, path,
                      "no layer has the name \"%.128s\"; allowed are names of the model's layers",
                      segments->names[i]);
    }
    return 0;
}

static int (*const checks[])(const struct job *job, struct err *err) = {
    check_mode,      check_names,    check_layers,     job_check_data,
    check_optimizer, check_segments, job_check_record, job_check_parallel,
};

int job_check(const struct job *job, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && rc == 0; i++)
        rc = checks[i](job, err);
    return rc;
}
