/* dataset_random.c: samples that are a function of (seed, sample): for trials and for tests. */
#include <stdlib.h>

#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "engine/data/dataset_format.h"

/* Input 0 is stream 0; the other inputs follow the target. */
enum { STREAM_TARGET = 1 };

struct random_input {
    struct rng_key key;
    enum dtype dtype;
    int64_t count, least, choices; /* integers lie in [least, least + choices) */
};

struct random_state {
    struct random_input inputs[MODEL_MAX_INPUTS];
    struct random_input target;
};

static int check_classes(const struct job_source *source, const struct dataset_want *want,
                         struct err *err)
{
    if (source->classes == 0 && want->target_dtype == DTYPE_I64)
        return err_set(err, ERR_DATA_INVALID,
                       "random data without classes has no labels; the loss wants class numbers "
                       "below %lld",
                       (long long)want->classes);
    if (source->classes > 0 && want->classes == 0)
        return err_set(err, ERR_DATA_INVALID,
                       "random data of %lld classes, but the model's output is no row of classes",
                       (long long)source->classes);
    if (source->classes > want->classes)
        return err_set(err, ERR_DATA_INVALID, "random data of %lld classes for a model of %lld",
                       (long long)source->classes, (long long)want->classes);
    return 0;
}

static struct random_input random_of(const struct job_source *source,
                                     const struct dataset_want *want, int i)
{
    const struct model_input *input = &want->inputs[i];
    int stream = i < STREAM_TARGET ? i : i + 1;
    struct random_input random = {
        .key = rng_key((uint64_t)source->seed, RNG_DATA, (uint64_t)stream),
        .dtype = input->dtype,
        .count = shape_count(&input->shape),
        .choices = input->values,
    };
    if (input->of >= 0) {
        random.least = 1;
        random.choices = want->inputs[input->of].shape.dim[0];
    }
    return random;
}

static int random_open(const struct job_source *source, const struct dataset_want *want,
                       const char *what, struct dataset_content *ret_content, struct err *err)
{
    if (check_classes(source, want, err) != 0)
        return dataset_blame(err, what, "classes");
    struct random_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a data set");
    bool one_hot = source->classes > 0 && want->target_dtype == DTYPE_F32;
    int64_t identity[4 + MODEL_MAX_INPUTS] = {source->samples, source->seed, source->classes};
    state->target = (struct random_input){
        .key = rng_key((uint64_t)source->seed, RNG_DATA, STREAM_TARGET),
        .count = one_hot ? 1 : shape_count(&want->target),
        .choices = source->classes,
    };
    for (int i = 0; i < want->n_inputs; i++) {
        struct random_input *input = &state->inputs[i];
        *input = random_of(source, want, i);
        identity[3 + i] = input->count;
        if (input->dtype == DTYPE_I64 && input->choices == 0) {
            free(state);
            return err_at(err, ERR_DATA_INVALID, what,
                          "no layer looks the integers of \"%s\" up: how large may they be?",
                          want->inputs[i].name);
        }
    }
    identity[3 + want->n_inputs] = state->target.count;
    *ret_content = (struct dataset_content){
        .state = state,
        .samples = source->samples,
        .labels = source->classes > 0,
        .fingerprint =
            hash64(identity, (size_t)(4 + want->n_inputs) * sizeof identity[0], DATA_RANDOM),
    };
    return 0;
}

static void random_close(void *state)
{
    free(state);
}

/* Four numbers a block: two pairs of Box-Muller. */
static void normals(const struct random_input *input, int64_t sample, float *to)
{
    for (int64_t i = 0; i < input->count; i += 4) {
        uint32_t word[4];
        float value[4];
        rng_block(input->key, (uint64_t)sample, (uint64_t)i / 4, word);
        rng_normal(word[0], word[1], value);
        rng_normal(word[2], word[3], value + 2);
        for (int64_t j = 0; j < 4 && i + j < input->count; j++)
            to[i + j] = value[j];
    }
}

static void integers(const struct random_input *input, int64_t sample, int64_t *to)
{
    for (int64_t i = 0; i < input->count; i++) {
        uint32_t word[4];
        rng_block(input->key, (uint64_t)sample, (uint64_t)i, word);
        uint64_t draw = (uint64_t)word[0] << 32 | word[1];
        to[i] = input->least + (int64_t)(draw % (uint64_t)input->choices);
    }
}

static int random_input(const void *state, int input, int64_t sample, void *ret_input,
                        struct err *err)
{
    (void)err;
    const struct random_input *random = &((const struct random_state *)state)->inputs[input];
    if (random->dtype == DTYPE_F32)
        normals(random, sample, ret_input);
    else
        integers(random, sample, ret_input);
    return 0;
}

static int random_labels(const void *state, int64_t sample, int64_t *ret_labels, struct err *err)
{
    (void)err;
    integers(&((const struct random_state *)state)->target, sample, ret_labels);
    return 0;
}

static int random_values(const void *state, int64_t sample, float *ret_target, struct err *err)
{
    (void)err;
    normals(&((const struct random_state *)state)->target, sample, ret_target);
    return 0;
}

const struct dataset_format dataset_format_random = {
    .open = random_open,
    .close = random_close,
    .input = random_input,
    .labels = random_labels,
    .values = random_values,
};
