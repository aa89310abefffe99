/* dataset_arrays.c: see dataset_arrays.h. */
#include "engine/data/dataset_arrays.h"

#include <stdlib.h>

#include "engine/base/hash.h"

struct arrays {
    struct arrays_reader reader;
    int n_inputs, first; /* first: of the inputs with samples, whose count is the data's */
    enum dtype dtype[MODEL_MAX_INPUTS];
    struct array inputs[MODEL_MAX_INPUTS], targets;
};

static struct shape sample_shape(const struct array *array)
{
    struct shape shape = {.rank = array->shape.rank - 1};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = array->shape.dim[i + 1];
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

static int check_sample(const char *name, const struct array *array, const struct shape *wanted,
                        const char *what, struct err *err)
{
    char found_text[SHAPE_TEXT], wanted_text[SHAPE_TEXT];
    struct shape found = sample_shape(array);
    if (serves(&found, wanted))
        return 0;
    return err_set(err, ERR_DATA_INVALID, "%s: samples of shape %s, the model's %s is %s", name,
                   shape_format(&found, found_text), what, shape_format(wanted, wanted_text));
}

static int check_lengths(const char *name, const struct array *array, int64_t most, struct err *err)
{
    for (int64_t i = 0; i < array->shape.dim[0]; i++) {
        int64_t length;
        array->type->wholes(array_sample(array, i), 1, &length);
        if (length < 1 || length > most)
            return err_set(err, ERR_DATA_INVALID, "%s: sample %lld has length %lld, want 1 to %lld",
                           name, (long long)i, (long long)length, (long long)most);
    }
    return 0;
}

static int check_input(const char *name, const struct array *array, const struct dataset_want *want,
                       int i, struct err *err)
{
    const struct model_input *input = &want->inputs[i];
    if (input->dtype == DTYPE_I64 && !array->type->integer)
        return err_set(err, ERR_DATA_INVALID, "%s: elements are %s, \"%s\" takes integers", name,
                       array->type->name, input->name);
    int rc = check_sample(name, array, &input->shape, "input", err);
    if (rc == 0 && input->of >= 0)
        rc = check_lengths(name, array, want->inputs[input->of].shape.dim[0], err);
    return rc;
}

static int check_labels(const char *name, const struct array *array,
                        const struct dataset_want *want, struct err *err)
{
    int rc = 0;
    for (int64_t i = 0; i < array->shape.dim[0] && rc == 0; i++) {
        int64_t label;
        array->type->wholes(array_sample(array, i), 1, &label);
        rc = dataset_check_labels(want, name, i, &label, 1, err);
    }
    return rc;
}

/* Class numbers where the loss wants them, one a sample or one a step; under MSELoss also where one
 * integer a sample meets a row of several outputs. */
static int check_targets(const char *name, const struct array *array,
                         const struct dataset_want *want, bool *ret_labels, struct err *err)
{
    char text[SHAPE_TEXT], wanted_text[SHAPE_TEXT];
    bool flat = array->shape.rank == 1 && array->type->integer;
    struct shape found = sample_shape(array);
    bool fits = array->type->integer && shape_equal(&found, &want->target);
    if (want->target_dtype == DTYPE_I64 && !fits && want->target.rank > 0)
        return err_set(err, ERR_DATA_INVALID,
                       "%s: %s of shape %s, the loss wants integer labels of shape %s a sample",
                       name, array->type->name, shape_format(&array->shape, text),
                       shape_format(&want->target, wanted_text));
    if (want->target_dtype == DTYPE_I64 && !fits)
        return err_set(err, ERR_DATA_INVALID,
                       "%s: %s of shape %s, the loss wants one integer label a sample", name,
                       array->type->name, shape_format(&array->shape, text));
    *ret_labels = want->target_dtype == DTYPE_I64 || (flat && want->classes > 1);
    if (*ret_labels)
        return flat ? check_labels(name, array, want, err) : 0;
    return check_sample(name, array, &want->target, "output", err);
}

/* The whole of an input that all samples share, as its only sample. */
static int make_sample(const char *name, struct array *array, struct err *err)
{
    char text[SHAPE_TEXT];
    struct shape shape = {.rank = array->shape.rank + 1, .dim = {1}};
    if (shape.rank > LIMIT_RANK)
        return err_set(err, ERR_DATA_INVALID, "%s: its shape %s is no input's", name,
                       shape_format(&array->shape, text));
    for (int i = 1; i < shape.rank; i++)
        shape.dim[i] = array->shape.dim[i - 1];
    array->shape = shape;
    return 0;
}

/* One a sample of the first input. */
static int check_samples(const struct arrays *arrays, const struct array *array, const char *name,
                         const char *first, const char *what, struct err *err)
{
    int64_t samples = arrays->inputs[arrays->first].shape.dim[0], found = array->shape.dim[0];
    if (found == samples)
        return 0;
    return err_set(err, ERR_DATA_INVALID, "%s has %lld %s, %s has %lld samples", name,
                   (long long)found, what, first, (long long)samples);
}

/* The name of the array for an input, and the document's key that gives it. */
static const char *name_of(const struct job_source *source, const struct dataset_want *want, int i,
                           const char **ret_key)
{
    const struct model_input *input = &want->inputs[i];
    *ret_key = input->of < 0 ? "inputs" : "lengths";
    return input->of < 0 ? job_texts_find(&source->inputs, input->name)
                         : job_texts_find(&source->lengths, want->inputs[input->of].name);
}

static int open_input(struct arrays *arrays, const struct job_source *source,
                      const struct dataset_want *want, int i, const struct arrays_reader *reader,
                      struct err *err)
{
    const char *key, *first_key;
    const char *name = name_of(source, want, i, &key);
    const char *first = name_of(source, want, arrays->first, &first_key);
    struct array *array = &arrays->inputs[i];
    int rc = reader->read(reader, name, array, err);
    if (rc != 0)
        return rc;
    arrays->dtype[i] = want->inputs[i].dtype;
    arrays->n_inputs = i + 1;
    rc = want->inputs[i].shared
             ? make_sample(name, array, err)
             : check_samples(arrays, array, name, first,
                             want->inputs[i].of < 0 ? "samples" : "lengths", err);
    return rc != 0 ? rc : check_input(name, array, want, i, err);
}

static bool has_targets(const struct job_source *source, const struct dataset_want *want,
                        const struct arrays_reader *reader)
{
    if (!want->predicting)
        return true;
    return source->targets != NULL &&
           (reader->holds == NULL || reader->holds(reader, source->targets));
}

static int open_targets(struct arrays *arrays, const struct job_source *source,
                        const struct dataset_want *want, const struct arrays_reader *reader,
                        bool *ret_labels, struct err *err)
{
    const char *key, *first = name_of(source, want, arrays->first, &key);
    if (!has_targets(source, want, reader))
        return 0;
    int rc = reader->read(reader, source->targets, &arrays->targets, err);
    if (rc == 0)
        rc = check_samples(arrays, &arrays->targets, source->targets, first, "targets", err);
    return rc != 0 ? rc : check_targets(source->targets, &arrays->targets, want, ret_labels, err);
}

static int open_all(struct arrays *arrays, const struct job_source *source,
                    const struct dataset_want *want, const char *what,
                    const struct arrays_reader *reader, bool *ret_labels, struct err *err)
{
    for (int i = 0; i < want->n_inputs; i++) {
        const char *key;
        name_of(source, want, i, &key);
        if (open_input(arrays, source, want, i, reader, err) != 0)
            return dataset_blame(err, what, key);
    }
    return open_targets(arrays, source, want, reader, ret_labels, err) == 0
               ? 0
               : dataset_blame(err, what, "targets");
}

static void close_reader(const struct arrays_reader *reader)
{
    if (reader->close != NULL)
        reader->close(reader->file);
}

int arrays_open(const struct job_source *source, const struct dataset_want *want, const char *what,
                const struct arrays_reader *reader, struct dataset_content *ret_content,
                struct err *err)
{
    struct arrays *arrays = calloc(1, sizeof *arrays);
    if (arrays == NULL) {
        close_reader(reader);
        return err_set(err, ERR_NOMEM, "no memory for a data set");
    }
    arrays->reader = *reader;
    while (want->inputs[arrays->first].shared)
        arrays->first++;
    bool labels = false;
    int rc = open_all(arrays, source, want, what, reader, &labels, err);
    if (rc != 0) {
        arrays_close(arrays);
        return rc;
    }
    uint64_t fingerprint = (uint64_t)source->format;
    for (int i = 0; i < arrays->n_inputs; i++)
        fingerprint = array_fingerprint(&arrays->inputs[i], fingerprint);
    bool targets = arrays->targets.type != NULL;
    *ret_content = (struct dataset_content){
        .state = arrays,
        .samples = arrays->inputs[arrays->first].shape.dim[0],
        .labels = labels,
        .untargeted = !targets,
        .fingerprint = targets ? array_fingerprint(&arrays->targets, fingerprint) : fingerprint,
    };
    return 0;
}

void arrays_close(void *state)
{
    struct arrays *arrays = state;
    for (int i = 0; i < MODEL_MAX_INPUTS; i++)
        array_done(&arrays->inputs[i]);
    array_done(&arrays->targets);
    close_reader(&arrays->reader);
    free(arrays);
}

int arrays_input(const void *state, int input, int64_t sample, void *ret_input, struct err *err)
{
    (void)err;
    const struct arrays *arrays = state;
    const struct array *array = &arrays->inputs[input];
    const uint8_t *from = array_sample(array, sample);
    if (arrays->dtype[input] == DTYPE_F32)
        array->type->floats(from, array_count(array), ret_input);
    else
        array->type->wholes(from, array_count(array), ret_input);
    return 0;
}

int arrays_labels(const void *state, int64_t sample, int64_t *ret_labels, struct err *err)
{
    (void)err;
    const struct array *array = &((const struct arrays *)state)->targets;
    array->type->wholes(array_sample(array, sample), array_count(array), ret_labels);
    return 0;
}

int arrays_values(const void *state, int64_t sample, float *ret_target, struct err *err)
{
    (void)err;
    const struct array *array = &((const struct arrays *)state)->targets;
    array->type->floats(array_sample(array, sample), array_count(array), ret_target);
    return 0;
}
