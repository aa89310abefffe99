/* dataset_random.c: samples that are a function of (seed, sample): for trials and for tests. */
#include <stdlib.h>

#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "engine/data/dataset_format.h"

enum { STREAM_INPUT, STREAM_TARGET };

struct random_state {
    struct rng_key input, target;
    int64_t input_count, target_count;
    uint64_t classes;
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

static int random_open(const struct job_source *source, const struct dataset_want *want,
                       const char *what, struct dataset_content *ret_content, struct err *err)
{
    if (check_classes(source, want, err) != 0)
        return dataset_blame(err, what, "classes");
    struct random_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a data set");
    state->input = rng_key((uint64_t)source->seed, RNG_DATA, STREAM_INPUT);
    state->target = rng_key((uint64_t)source->seed, RNG_DATA, STREAM_TARGET);
    state->input_count = shape_count(&want->input);
    state->target_count = shape_count(&want->target);
    state->classes = (uint64_t)source->classes;
    const int64_t identity[] = {source->samples, source->seed, source->classes, state->input_count,
                                state->target_count};
    *ret_content = (struct dataset_content){
        .state = state,
        .samples = source->samples,
        .labels = source->classes > 0,
        .fingerprint = hash64(identity, sizeof identity, DATA_RANDOM),
    };
    return 0;
}

static void random_close(void *state)
{
    free(state);
}

/* Four numbers a block: two pairs of Box-Muller. */
static void normals(struct rng_key key, int64_t sample, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i += 4) {
        uint32_t word[4];
        float value[4];
        rng_block(key, (uint64_t)sample, (uint64_t)i / 4, word);
        rng_normal(word[0], word[1], value);
        rng_normal(word[2], word[3], value + 2);
        for (int64_t j = 0; j < 4 && i + j < n; j++)
            to[i + j] = value[j];
    }
}

static void random_input(const void *state, int64_t sample, float *ret_input)
{
    const struct random_state *random = state;
    normals(random->input, sample, random->input_count, ret_input);
}

static int64_t random_label(const void *state, int64_t sample)
{
    const struct random_state *random = state;
    uint32_t word[4];
    rng_block(random->target, (uint64_t)sample, 0, word);
    return (int64_t)(((uint64_t)word[0] << 32 | word[1]) % random->classes);
}

static void random_values(const void *state, int64_t sample, float *ret_target)
{
    const struct random_state *random = state;
    normals(random->target, sample, random->target_count, ret_target);
}

const struct dataset_format dataset_format_random = {
    .open = random_open,
    .close = random_close,
    .input = random_input,
    .label = random_label,
    .values = random_values,
};
