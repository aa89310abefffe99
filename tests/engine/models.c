#include "tests/engine/models.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/ops/registry.h"
#include "tests/lib/checks.h"

const char *const models_cnn_input = "[1, 8, 8]";
const char *const models_cnn =
    "{'type': 'Conv2d', 'name': 'conv1', 'out_channels': 4, 'kernel_size': 3, 'padding': 1},"
    "{'type': 'BatchNorm2d', 'name': 'bn1'},"
    "{'type': 'ReLU', 'name': 'relu1'},"
    "{'type': 'MaxPool2d', 'name': 'pool1', 'kernel_size': 2},"
    "{'type': 'Conv2d', 'name': 'conv2', 'out_channels': 4, 'kernel_size': 3, 'padding': 1},"
    "{'type': 'Add', 'name': 'sum', 'inputs': ['conv2', 'pool1']},"
    "{'type': 'Flatten', 'name': 'flat'},"
    "{'type': 'Dropout', 'name': 'drop'},"
    "{'type': 'Linear', 'name': 'fc', 'out_features': 10}";

static const char *const default_members = "'loss': {'type': 'CrossEntropyLoss'},"
                                           "'optimizer': {'type': 'SGD', 'lr': 0.1,"
                                           " 'momentum': 0.9}";

static struct job *parse(const char *model, const char *rest)
{
    static char text[16384];
    struct err err = ERR_INIT;
    struct job *job = NULL;
    int length = snprintf(text, sizeof text, "{'version': 1, 'model': {%s}, %s}", model, rest);
    ck_assert_int_lt(length, (int)sizeof text);
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    int rc = job_parse(text, (size_t)length, &job, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    return job;
}

static struct model *build(struct job *job)
{
    struct err err = ERR_INIT;
    struct model *model = NULL;
    int rc = model_build(job, &op_registry, &model, &err);
    ck_assert_msg(rc == 0, "%s: %s", err.path, err.message);
    return model;
}

struct job *models_job(const char *input, const char *layers, const char *more)
{
    static char model[16384], rest[4096];
    bool trains = more != NULL && strstr(more, "'train'") != NULL;
    int length =
        snprintf(model, sizeof model, "'input': {'shape': %s}, 'layers': [%s]", input, layers);
    ck_assert_int_lt(length, (int)sizeof model);
    length = snprintf(rest, sizeof rest,
                      "'data': {'train': {'format': 'idx', 'inputs': 'x', 'targets': 'y'}},"
                      "%s %s",
                      trains ? "" : "'train': {'epochs': 1, 'batch_size': 4},",
                      more != NULL ? more : default_members);
    ck_assert_int_lt(length, (int)sizeof rest);
    return parse(model, rest);
}

struct model *models_new(const char *input, const char *layers, const char *more)
{
    return build(models_job(input, layers, more));
}

struct model *models_of(const char *model, const char *rest)
{
    return build(parse(model, rest));
}

void models_free(struct model *model)
{
    struct job *job = (struct job *)model->job;
    model_free(model);
    job_free(job);
}

void models_fill(float *to, size_t n, uint64_t seed)
{
    struct rng_key key = rng_key(seed, RNG_DATA, 0);
    for (size_t i = 0; i < n; i++) {
        uint32_t word[4];
        rng_block(key, i, 0, word);
        to[i] = 2 * rng_uniform(word[0]) - 1;
    }
}
