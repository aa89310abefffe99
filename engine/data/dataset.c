/* dataset.c: what is the same for every format: the transform, one-hot rows, the table of formats.
 */
#include "engine/data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/data/dataset_format.h"

struct transform { /* of one channel: (x * scale - mean) / std */
    double scale, mean, std;
};

struct dataset {
    const struct dataset_format *format;
    struct dataset_content content;
    int64_t input_count, target_count;
    bool one_hot;
    int64_t channels, channel_count; /* channel_count: elements of one channel */
    bool identity;                   /* the transform changes nothing */
    struct transform *transform;     /* [channels] */
};

static const struct dataset_format *const formats[] = {
    [DATA_RANDOM] = &dataset_format_random,
    [DATA_IDX] = &dataset_format_idx,
};

int dataset_blame(struct err *err, const char *what, const char *member)
{
    snprintf(err->path, sizeof err->path, "%s/%s", what, member);
    return err->code;
}

static double number(const struct job_numbers *numbers, int64_t channel)
{
    return numbers->v[numbers->n == 1 ? 0 : channel];
}

static int check_numbers(const struct job_numbers *numbers, const char *name,
                         const struct dataset *dataset, struct err *err)
{
    if (numbers->n == 1 || (int64_t)numbers->n == dataset->channels)
        return 0;
    err_set(err, ERR_DATA_INVALID, "%zu numbers for an input of %lld channel%s", numbers->n,
            (long long)dataset->channels, dataset->channels == 1 ? "" : "s");
    return dataset_blame(err, "/data/transform", name);
}

static int transform_init(struct dataset *dataset, const struct job_data *data,
                          const struct dataset_want *want, struct err *err)
{
    dataset->channels = want->input.rank > 0 ? want->input.dim[0] : 1;
    dataset->channel_count = dataset->input_count / dataset->channels;
    int rc = check_numbers(&data->scale, "scale", dataset, err);
    if (rc == 0)
        rc = check_numbers(&data->mean, "mean", dataset, err);
    if (rc == 0)
        rc = check_numbers(&data->std, "std", dataset, err);
    if (rc != 0)
        return rc;

    dataset->transform = calloc((size_t)dataset->channels, sizeof *dataset->transform);
    if (dataset->transform == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a transform");
    dataset->identity = true;
    for (int64_t c = 0; c < dataset->channels; c++) {
        struct transform *t = &dataset->transform[c];
        *t = (struct transform){number(&data->scale, c), number(&data->mean, c),
                                number(&data->std, c)};
        if (t->std == 0) {
            err_set(err, ERR_DATA_INVALID, "a standard deviation of 0 cannot be divided by");
            return dataset_blame(err, "/data/transform", "std");
        }
        dataset->identity = dataset->identity && t->scale == 1 && t->mean == 0 && t->std == 1;
    }
    return 0;
}

int dataset_open(const struct job_source *source, const struct job_data *data,
                 const struct dataset_want *want, const char *what, struct dataset **ret_dataset,
                 struct err *err)
{
    struct dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a data set");
    dataset->input_count = shape_count(&want->input);
    dataset->target_count = want->target_dtype == DTYPE_I64 ? 1 : shape_count(&want->target);
    int rc = transform_init(dataset, data, want, err);
    if (rc != 0)
        goto out;

    const struct dataset_format *format = formats[source->format];
    rc = format->open(source, want, what, &dataset->content, err);
    if (rc != 0)
        goto out;
    dataset->format = format;
    dataset->one_hot = dataset->content.labels && want->target_dtype == DTYPE_F32;
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
    free(dataset->transform);
    free(dataset);
}

int64_t dataset_samples(const struct dataset *dataset)
{
    return dataset->content.samples;
}

uint64_t dataset_fingerprint(const struct dataset *dataset)
{
    return hash64(dataset->transform, (size_t)dataset->channels * sizeof *dataset->transform,
                  dataset->content.fingerprint);
}

static void apply(const struct dataset *dataset, float *input)
{
    for (int64_t c = 0; c < dataset->channels; c++, input += dataset->channel_count) {
        const struct transform t = dataset->transform[c];
        for (int64_t i = 0; i < dataset->channel_count; i++)
            input[i] = (float)((input[i] * t.scale - t.mean) / t.std);
    }
}

static void gather_target(const struct dataset *dataset, int64_t sample, int64_t to, void *targets)
{
    const struct dataset_content *content = &dataset->content;
    float *row = (float *)targets + to * dataset->target_count;
    if (!content->labels) {
        dataset->format->values(content->state, sample, row);
    } else if (dataset->one_hot) {
        memset(row, 0, (size_t)dataset->target_count * sizeof *row);
        row[dataset->format->label(content->state, sample)] = 1;
    } else {
        ((int64_t *)targets)[to] = dataset->format->label(content->state, sample);
    }
}

void dataset_gather(const struct dataset *dataset, const int64_t *index, int64_t n, float *inputs,
                    void *targets)
{
    for (int64_t i = 0; i < n; i++) {
        float *input = inputs + i * dataset->input_count;
        dataset->format->input(dataset->content.state, index[i], input);
        if (!dataset->identity)
            apply(dataset, input);
        gather_target(dataset, index[i], i, targets);
    }
}
