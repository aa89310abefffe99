/* dataset.c: what is the same for every format: the transform, one-hot rows, the check of what is
 * gathered, the table of formats.
 */
#include "engine/data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/data/augment.h"
#include "engine/data/dataset_format.h"

struct transform { /* of one channel: (x * scale - mean) / std */
    double scale, mean, std;
};

struct input {
    struct model_input want;
    int64_t count;                   /* elements of a sample */
    int64_t channels, channel_count; /* that differ in their transform; elements of one */
    struct transform *transform;     /* [channels]; NULL: it changes nothing */
    int64_t least, most;             /* of integers */
};

struct dataset {
    const struct dataset_format *format;
    struct dataset_content content;
    struct dataset_want want; /* but for its inputs */
    const char *what;
    int64_t target_count;
    bool one_hot;
    uint64_t fingerprint;
    int64_t resize[2]; /* of images; 0: as they are */
    struct augment augment;
    int n_inputs;
    struct input inputs[MODEL_MAX_INPUTS];
};

static const struct dataset_format *const formats[DATA_FORMAT_COUNT] = {
    [DATA_RANDOM] = &dataset_format_random,   [DATA_IDX] = &dataset_format_idx,
    [DATA_NPY] = &dataset_format_npy,         [DATA_SAFETENSORS] = &dataset_format_safetensors,
    [DATA_CIFAR10] = &dataset_format_cifar10, [DATA_CIFAR100] = &dataset_format_cifar100,
    [DATA_CSV] = &dataset_format_csv,         [DATA_IMAGE_FOLDER] = &dataset_format_image_folder,
    [DATA_TOKENS] = &dataset_format_tokens,   [DATA_TEXT] = &dataset_format_text,
};

int dataset_blame(struct err *err, const char *what, const char *member)
{
    snprintf(err->path, sizeof err->path, "%s/%s", what, member);
    return err->code;
}

int dataset_check_labels(const struct dataset_want *want, const char *where, int64_t sample,
                         const int64_t *labels, int64_t n, struct err *err)
{
    for (int64_t i = 0; i < n; i++)
        if ((labels[i] < 0 || labels[i] >= want->classes) &&
            (want->ignored == NULL || labels[i] != *want->ignored))
            return err_set(err, ERR_DATA_INVALID,
                           "%s: sample %lld has label %lld, want 0 to %lld (the model has %lld "
                           "classes)",
                           where, (long long)sample, (long long)labels[i],
                           (long long)want->classes - 1, (long long)want->classes);
    return 0;
}

static double number(const struct job_numbers *numbers, int64_t channel)
{
    return numbers->v[numbers->n == 1 ? 0 : channel];
}

static int check_numbers(const struct job_numbers *numbers, const char *name,
                         const struct input *input, struct err *err)
{
    if (numbers->n == 1 || (int64_t)numbers->n == input->channels)
        return 0;
    err_set(err, ERR_DATA_INVALID, "%zu numbers for an input of %lld channel%s", numbers->n,
            (long long)input->channels, input->channels == 1 ? "" : "s");
    return dataset_blame(err, "/data/transform", name);
}

static int transform_init(struct input *input, const struct job_data *data, struct err *err)
{
    int rc = check_numbers(&data->scale, "scale", input, err);
    if (rc == 0)
        rc = check_numbers(&data->mean, "mean", input, err);
    if (rc == 0)
        rc = check_numbers(&data->std, "std", input, err);
    if (rc != 0)
        return rc;

    if (data->scale.n == 1 && data->mean.n == 1 && data->std.n == 1)
        input->channels = 1; /* of all elements: there may be 2^31 features */
    input->channel_count = input->count / input->channels;
    input->transform = calloc((size_t)input->channels, sizeof *input->transform);
    if (input->transform == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a transform");
    for (int64_t c = 0; c < input->channels; c++) {
        struct transform *t = &input->transform[c];
        *t = (struct transform){number(&data->scale, c), number(&data->mean, c),
                                number(&data->std, c)};
        if (t->std == 0) {
            err_set(err, ERR_DATA_INVALID, "a standard deviation of 0 cannot be divided by");
            return dataset_blame(err, "/data/transform", "std");
        }
    }
    return 0;
}

/* Steps 1 … T of what these are the lengths of; rows of the table that they are looked up in. */
static void integer_range(const struct dataset_want *want, struct input *input)
{
    input->least = input->want.of >= 0;
    input->most = input->want.of >= 0      ? want->inputs[input->want.of].shape.dim[0]
                  : input->want.values > 0 ? input->want.values - 1
                                           : INT64_MAX;
    if (input->most == INT64_MAX)
        input->least = INT64_MIN;
}

static int inputs_init(struct dataset *dataset, const struct job_data *data,
                       const struct dataset_want *want, struct err *err)
{
    for (int i = 0; i < want->n_inputs; i++) {
        struct input *input = &dataset->inputs[i];
        const struct shape *shape = &want->inputs[i].shape;
        *input = (struct input){.want = want->inputs[i], .count = shape_count(shape)};
        input->channels = shape->rank > 0 ? shape->dim[0] : 1;
        dataset->n_inputs++;
        integer_range(want, input);
        bool transforms = input->want.dtype == DTYPE_F32 && !input->want.shared;
        int rc = transforms ? transform_init(input, data, err) : 0;
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* A change of the transform is a change of the data. */
static uint64_t fingerprint(const struct dataset *dataset)
{
    const int64_t moves[] = {dataset->augment.crop, dataset->augment.padding, dataset->augment.flip,
                             dataset->resize[0], dataset->resize[1]};
    uint64_t hash = hash64(moves, sizeof moves, dataset->content.fingerprint);
    for (int i = 0; i < dataset->n_inputs; i++) {
        const struct input *input = &dataset->inputs[i];
        if (input->transform != NULL)
            hash =
                hash64(input->transform, (size_t)input->channels * sizeof *input->transform, hash);
    }
    return hash;
}

/* Drops a transform that changes nothing. */
static void drop_identity(struct input *input)
{
    for (int64_t c = 0; input->transform != NULL && c < input->channels; c++) {
        const struct transform *t = &input->transform[c];
        if (t->scale != 1 || t->mean != 0 || t->std != 1)
            return;
    }
    free(input->transform);
    input->transform = NULL;
}

int dataset_open(const struct job_source *source, const struct job_data *data,
                 const struct dataset_want *want, const char *what, struct dataset **ret_dataset,
                 struct err *err)
{
    struct dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a data set");
    dataset->want = *want;
    dataset->want.inputs = NULL;
    dataset->what = what;
    dataset->target_count = shape_count(&want->target);
    dataset->resize[0] = data->resize[0];
    dataset->resize[1] = data->resize[1];
    dataset->augment = (struct augment){.crop = data->has_random_crop,
                                        .flip = data->random_flip,
                                        .padding = data->crop_padding,
                                        .seed = want->seed};
    int rc = inputs_init(dataset, data, want, err);
    if (rc != 0)
        goto out;

    const struct dataset_format *format = formats[source->format];
    rc = format->open(source, want, what, &dataset->content, err);
    if (rc != 0)
        goto out;
    dataset->format = format;
    dataset->one_hot = dataset->content.labels && want->target_dtype == DTYPE_F32;
    dataset->fingerprint = fingerprint(dataset);
    for (int i = 0; i < dataset->n_inputs; i++)
        drop_identity(&dataset->inputs[i]);
    *ret_dataset = dataset;
    dataset = NULL;
out:
    dataset_close(dataset);
    return rc;
}

void dataset_close(struct dataset *dataset)
{
    if (dataset == NULL)
        return;
    if (dataset->format != NULL)
        dataset->format->close(dataset->content.state);
    for (int i = 0; i < dataset->n_inputs; i++)
        free(dataset->inputs[i].transform);
    free(dataset);
}

int64_t dataset_samples(const struct dataset *dataset)
{
    return dataset->content.samples;
}

bool dataset_has_targets(const struct dataset *dataset)
{
    return !dataset->content.untargeted;
}

uint64_t dataset_fingerprint(const struct dataset *dataset)
{
    return dataset->fingerprint;
}

int dataset_inputs(const struct dataset *dataset)
{
    return dataset->n_inputs;
}

size_t dataset_input_bytes(const struct dataset *dataset, int input)
{
    const struct input *in = &dataset->inputs[input];
    return (size_t)in->count * dtype_size(in->want.dtype);
}

size_t dataset_target_bytes(const struct dataset *dataset)
{
    return (size_t)dataset->target_count * dtype_size(dataset->want.target_dtype);
}

static void transform(const struct input *input, float *value)
{
    for (int64_t c = 0; c < input->channels; c++, value += input->channel_count) {
        const struct transform t = input->transform[c];
        for (int64_t i = 0; i < input->channel_count; i++)
            value[i] = (float)((value[i] * t.scale - t.mean) / t.std);
    }
}

static int check_integers(const struct dataset *dataset, const struct input *input, int64_t sample,
                          const int64_t *value, struct err *err)
{
    for (int64_t i = 0; i < input->count; i++)
        if (value[i] < input->least || value[i] > input->most)
            return err_at(err, ERR_DATA_INVALID, dataset->what,
                          "sample %lld has %lld in \"%s\", want %lld to %lld", (long long)sample,
                          (long long)value[i], input->want.name, (long long)input->least,
                          (long long)input->most);
    return 0;
}

/* A sample, and where it stands in the epoch's order. */
struct place {
    int64_t sample, epoch, position;
};

/* A picture is at least as large as the window, and of its size unless it is cropped. */
static int check_picture(const struct dataset *dataset, const struct input *input,
                         const struct image *image, const char *name, struct err *err)
{
    int64_t height = input->want.shape.dim[1], width = input->want.shape.dim[2];
    int64_t padding = dataset->augment.crop ? 2 * dataset->augment.padding : 0;
    bool larger = dataset->augment.crop;
    if ((larger ? image->height + padding >= height : image->height == height) &&
        (larger ? image->width + padding >= width : image->width == width))
        return 0;
    return err_at(err, ERR_DATA_INVALID, dataset->what,
                  "%s: %lld x %lld pixels, the model's input is %lld x %lld%s", name,
                  (long long)image->width, (long long)image->height, (long long)width,
                  (long long)height, larger ? "" : " (\"resize\" brings all to one size)");
}

static struct augment_window window_of(const struct dataset *dataset, const struct place *place,
                                       int64_t rows, int64_t columns)
{
    return dataset->want.training
               ? augment_draw(&dataset->augment, place->epoch, place->position, rows, columns)
               : augment_middle(rows, columns);
}

static int cut_picture(const struct dataset *dataset, const struct input *input,
                       const struct place *place, struct image *image, const char *name,
                       float *value, struct err *err)
{
    const int64_t *dim = input->want.shape.dim;
    int rc = dataset->resize[0] > 0
                 ? image_resize(image, dataset->resize[0], dataset->resize[1], err)
                 : 0;
    if (rc == 0)
        rc = check_picture(dataset, input, image, name, err);
    if (rc != 0)
        return rc;
    struct augment_window window =
        window_of(dataset, place, image->height - dim[1], image->width - dim[2]);
    augment_cut(image, window, dim[1], dim[2], value);
    return 0;
}

static int gather_picture(const struct dataset *dataset, const struct input *input,
                          const struct place *place, float *value, struct err *err)
{
    struct image image = {.pixels = NULL};
    const char *name;
    int rc = dataset->format->image(dataset->content.state, place->sample,
                                    (int)input->want.shape.dim[0], &image, &name, err);
    if (rc == 0)
        rc = cut_picture(dataset, input, place, &image, name, value, err);
    image_done(&image);
    return rc;
}

/* An input as the format has it, [C, H, W] moved as a picture is. */
static int gather_array(const struct dataset *dataset, int i, const struct place *place,
                        void *value, struct err *err)
{
    const struct input *input = &dataset->inputs[i];
    const struct shape *shape = &input->want.shape;
    if (input->want.shared)
        return dataset->format->input(dataset->content.state, i, 0, value, err);
    int rc = dataset->format->input(dataset->content.state, i, place->sample, value, err);
    if (rc == 0 && shape->rank == 3 && input->want.dtype == DTYPE_F32 &&
        (dataset->augment.crop || dataset->augment.flip))
        augment_shift(window_of(dataset, place, 0, 0), shape->dim[0], shape->dim[1], shape->dim[2],
                      value);
    return rc;
}

static int gather_input(const struct dataset *dataset, int i, const struct place *place,
                        void *value, struct err *err)
{
    const struct input *input = &dataset->inputs[i];
    int rc = dataset->format->image != NULL ? gather_picture(dataset, input, place, value, err)
                                            : gather_array(dataset, i, place, value, err);
    if (rc != 0)
        return rc;
    if (input->want.dtype == DTYPE_I64)
        return check_integers(dataset, input, place->sample, value, err);
    if (input->transform != NULL)
        transform(input, value);
    return 0;
}

static int check_labels(const struct dataset *dataset, int64_t sample, const int64_t *labels,
                        int64_t n, struct err *err)
{
    int rc = dataset_check_labels(&dataset->want, "the targets", sample, labels, n, err);
    if (rc != 0)
        snprintf(err->path, sizeof err->path, "%s", dataset->what);
    return rc;
}

static int gather_target(const struct dataset *dataset, int64_t sample, void *target,
                         struct err *err)
{
    const struct dataset_content *content = &dataset->content;
    if (content->untargeted) {
        memset(target, 0, dataset_target_bytes(dataset));
        return 0;
    }
    if (!content->labels)
        return dataset->format->values(content->state, sample, target, err);
    int64_t label = 0, *labels = dataset->one_hot ? &label : target;
    int64_t n = dataset->one_hot ? 1 : dataset->target_count;
    int rc = dataset->format->labels(content->state, sample, labels, err);
    if (rc == 0)
        rc = check_labels(dataset, sample, labels, n, err);
    if (rc == 0 && dataset->one_hot) {
        memset(target, 0, dataset_target_bytes(dataset));
        ((float *)target)[label] = 1;
    }
    return rc;
}

int dataset_gather(const struct dataset *dataset, const struct dataset_rows *rows,
                   void *const *inputs, void *targets, struct err *err)
{
    int rc = 0;
    for (int64_t n = 0; n < rows->n && rc == 0; n++) {
        const struct place place = {rows->index[n], rows->epoch, rows->first + n};
        for (int i = 0; i < dataset->n_inputs && rc == 0; i++)
            rc = gather_input(dataset, i, &place,
                              (char *)inputs[i] + (size_t)n * dataset_input_bytes(dataset, i), err);
        if (rc == 0)
            rc = gather_target(dataset, rows->index[n],
                               (char *)targets + (size_t)n * dataset_target_bytes(dataset), err);
    }
    return rc;
}
