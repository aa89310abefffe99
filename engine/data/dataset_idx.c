/* dataset_idx.c: inputs and targets from a pair of IDX files. */
#include <stdlib.h>

#include "engine/base/hash.h"
#include "engine/data/dataset_format.h"
#include "engine/data/idx.h"

struct idx_state {
    struct idx inputs, targets;
    int64_t input_count, target_count; /* elements of one sample */
};

static struct shape sample_shape(const struct idx *idx)
{
    struct shape shape = {.rank = idx->shape.rank - 1};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = idx->shape.dim[i + 1];
    return shape;
}

/* Whether samples of shape `found` serve `wanted`: equal, or [H, W] for [1, H, W]. */
static bool serves(const struct shape *found, const struct shape *wanted)
{
    if (shape_equal(found, wanted))
        return true;
    struct shape widened = {.rank = found->rank + 1, .dim = {1}};
    if (widened.rank > LIMIT_RANK)
        return false;
    for (int i = 0; i < found->rank; i++)
        widened.dim[i + 1] = found->dim[i];
    return shape_equal(&widened, wanted);
}

static int check_sample(const char *path, const struct idx *idx, const struct shape *wanted,
                        const char *what, struct err *err)
{
    char found_text[160], wanted_text[160];
    struct shape found = sample_shape(idx);
    if (serves(&found, wanted))
        return 0;
    return err_set(err, ERR_DATA_INVALID, "%s: samples of shape %s, the model's %s is %s", path,
                   shape_format(&found, found_text), what, shape_format(wanted, wanted_text));
}

static int check_labels(const char *path, const struct idx *idx, int64_t classes, struct err *err)
{
    for (int64_t i = 0; i < idx->shape.dim[0]; i++) {
        int64_t label = idx->type->whole(idx->data + (size_t)i * idx->type->size);
        if (label < 0 || label >= classes)
            return err_set(err, ERR_DATA_INVALID,
                           "%s: sample %lld has label %lld, want 0 to %lld (the model has %lld "
                           "classes)",
                           path, (long long)i, (long long)label, (long long)classes - 1,
                           (long long)classes);
    }
    return 0;
}

/* Class numbers where the loss wants them; under MSELoss also where one integer a sample meets a
 * row of several outputs. */
static int check_targets(const char *path, const struct idx *idx, const struct dataset_want *want,
                         bool *ret_labels, struct err *err)
{
    char text[160];
    bool flat = idx->shape.rank == 1 && idx->type->integer;
    if (want->target_dtype == DTYPE_I64 && !flat)
        return err_set(err, ERR_DATA_INVALID,
                       "%s: %s of shape %s, the loss wants one integer label a sample", path,
                       idx->type->name, shape_format(&idx->shape, text));
    *ret_labels = want->target_dtype == DTYPE_I64 || (flat && want->classes > 1);
    if (*ret_labels)
        return check_labels(path, idx, want->classes, err);
    return check_sample(path, idx, &want->target, "output", err);
}

static uint64_t fingerprint(const struct idx *idx, uint64_t seed)
{
    seed = hash64(idx->shape.dim, sizeof idx->shape.dim[0] * (size_t)idx->shape.rank, seed);
    return hash64(idx->data, idx->bytes, seed + (uint64_t)idx->type->code);
}

static void idx_close(void *closed)
{
    struct idx_state *state = closed;
    idx_done(&state->inputs);
    idx_done(&state->targets);
    free(state);
}

static int read_inputs(struct idx_state *state, const struct job_source *source,
                       const struct dataset_want *want, struct err *err)
{
    int rc = idx_read(source->inputs, &state->inputs, err);
    return rc != 0 ? rc : check_sample(source->inputs, &state->inputs, &want->input, "input", err);
}

static int read_targets(struct idx_state *state, const struct job_source *source,
                        const struct dataset_want *want, bool *ret_labels, struct err *err)
{
    int rc = idx_read(source->targets, &state->targets, err);
    if (rc != 0)
        return rc;
    int64_t samples = state->inputs.shape.dim[0], targets = state->targets.shape.dim[0];
    if (samples != targets)
        return err_set(err, ERR_DATA_INVALID, "%s has %lld targets, %s has %lld samples",
                       source->targets, (long long)targets, source->inputs, (long long)samples);
    return check_targets(source->targets, &state->targets, want, ret_labels, err);
}

static int idx_open(const struct job_source *source, const struct dataset_want *want,
                    const char *what, struct dataset_content *ret_content, struct err *err)
{
    struct idx_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a data set");
    bool labels = false;
    const char *member = "inputs";
    int rc = read_inputs(state, source, want, err);
    if (rc == 0) {
        member = "targets";
        rc = read_targets(state, source, want, &labels, err);
    }
    if (rc != 0) {
        idx_close(state);
        return dataset_blame(err, what, member);
    }
    int64_t samples = state->inputs.shape.dim[0];
    state->input_count = shape_count(&state->inputs.shape) / samples;
    state->target_count = shape_count(&state->targets.shape) / samples;
    *ret_content = (struct dataset_content){
        .state = state,
        .samples = samples,
        .labels = labels,
        .fingerprint = fingerprint(&state->targets, fingerprint(&state->inputs, DATA_IDX)),
    };
    return 0;
}

static const uint8_t *sample_at(const struct idx *idx, int64_t sample, int64_t count)
{
    return idx->data + (size_t)(sample * count) * idx->type->size;
}

static void idx_input(const void *opened, int64_t sample, float *ret_input)
{
    const struct idx_state *state = opened;
    state->inputs.type->floats(sample_at(&state->inputs, sample, state->input_count),
                               state->input_count, ret_input);
}

static int64_t idx_label(const void *opened, int64_t sample)
{
    const struct idx_state *state = opened;
    return state->targets.type->whole(sample_at(&state->targets, sample, 1));
}

static void idx_values(const void *opened, int64_t sample, float *ret_target)
{
    const struct idx_state *state = opened;
    state->targets.type->floats(sample_at(&state->targets, sample, state->target_count),
                                state->target_count, ret_target);
}

const struct dataset_format dataset_format_idx = {
    .open = idx_open,
    .close = idx_close,
    .input = idx_input,
    .label = idx_label,
    .values = idx_values,
};
