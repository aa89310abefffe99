/* job_check_data.c: the rules between a model's inputs and the data that fills them. */
#include <stdio.h>
#include <string.h>

#include "proto/job_check.h"

/* What a format can fill. */
struct format_rules {
    const char *name;
    bool inputs;  /* several inputs */
    bool lengths; /* inputs with lengths */
    bool named;   /* by "inputs" and "lengths" of its own, so both must fit the model's */
};

static const struct format_rules formats[DATA_FORMAT_COUNT] = {
    [DATA_RANDOM] = {"random", true, true, false},
    [DATA_IDX] = {"idx", true, true, true},
    [DATA_NPY] = {"npy", true, true, true},
    [DATA_SAFETENSORS] = {"safetensors", true, true, true},
    [DATA_CIFAR10] = {.name = "cifar10"},
    [DATA_CIFAR100] = {.name = "cifar100"},
    [DATA_CSV] = {.name = "csv"},
    [DATA_IMAGE_FOLDER] = {.name = "image_folder"},
    [DATA_TOKENS] = {.name = "tokens"},
    [DATA_TEXT] = {.name = "text"},
};

const struct job_input *job_find_input(const struct job *job, const char *name)
{
    for (size_t i = 0; i < job->model.n_inputs; i++)
        if (strcmp(job->model.inputs[i].name, name) == 0)
            return &job->model.inputs[i];
    return NULL;
}

static size_t count_lengths(const struct job *job)
{
    size_t n = 0;
    for (size_t i = 0; i < job->model.n_inputs; i++)
        n += job->model.inputs[i].lengths;
    return n;
}

/* Whether `texts` has one for each input that needs one, and no other; `wanted` inputs do. */
static int check_texts(const struct job *job, const struct job_texts *texts, bool lengths,
                       size_t wanted, const char *path, struct err *err)
{
    const char *what = lengths ? "inputs with lengths" : "inputs";
    if (texts->n > 0 && texts->names == NULL && wanted != 1)
        return err_at(err, ERR_JOB_INVALID, path,
                      "the model has %zu %s; say which this is for: {"
                      "\"NAME\": …}",
                      wanted, what);
    for (size_t i = 0; i < texts->n && texts->names != NULL; i++) {
        const struct job_input *input = job_find_input(job, texts->names[i]);
        if (input == NULL || (lengths && !input->lengths))
            return err_at(err, ERR_JOB_INVALID, path, "\"%.128s\" is none of the model's %s",
                          texts->names[i], what);
    }
    for (size_t i = 0; i < job->model.n_inputs; i++) {
        const struct job_input *input = &job->model.inputs[i];
        if ((!lengths || input->lengths) && job_texts_find(texts, input->name) == NULL)
            return err_at(err, ERR_JOB_INVALID, path, "there are no %s for the input \"%.128s\"",
                          lengths ? "lengths" : "samples", input->name);
    }
    return 0;
}

static int check_named(const struct job *job, const struct job_source *source, const char *path,
                       struct err *err)
{
    char at[64];
    size_t n_lengths = count_lengths(job);
    snprintf(at, sizeof at, "%s/inputs", path);
    int rc = check_texts(job, &source->inputs, false, job->model.n_inputs, at, err);
    snprintf(at, sizeof at, "%s/lengths", path);
    if (rc == 0 && (n_lengths > 0 || source->lengths.n > 0))
        rc = check_texts(job, &source->lengths, true, n_lengths, at, err);
    return rc;
}

static int check_source(const struct job *job, const struct job_source *source, const char *path,
                        struct err *err)
{
    const struct format_rules *rules = &formats[source->format];
    if (job->model.n_inputs > 1 && !rules->inputs)
        return err_at(err, ERR_JOB_INVALID, path, "%s data fills one input, the model has %zu",
                      rules->name, job->model.n_inputs);
    if (count_lengths(job) > 0 && !rules->lengths)
        return err_at(err, ERR_JOB_INVALID, path, "%s data has no lengths", rules->name);
    if (rules->named && source->targets == NULL && job->train.mode != MODE_PREDICT)
        return err_at(err, ERR_JOB_INVALID, path,
                      "%s data needs \"targets\" here; only predictions do without", rules->name);
    bool labels = job->loss.type == LOSS_CROSS_ENTROPY || job->loss.type == LOSS_NLL;
    if (labels && source->format == DATA_RANDOM && source->classes == 0)
        return err_at(err, ERR_JOB_INVALID, path, "%s needs labels: random data needs \"classes\"",
                      loss_type_name(job->loss.type));
    return rules->named ? check_named(job, source, path, err) : 0;
}

/* What has no samples cannot say how many there are. */
static int check_scatter(const struct job *job, struct err *err)
{
    const struct job_model *model = &job->model;
    char path[LIMIT_NAME_BYTES + 32];
    size_t n_scattered = 0;
    for (size_t i = 0; i < model->n_inputs; i++) {
        const struct job_input *input = &model->inputs[i];
        n_scattered += input->scatter;
        snprintf(path, sizeof path, "/model/inputs/%s/lengths", input->name);
        if (input->lengths && !input->scatter)
            return err_at(err, ERR_JOB_INVALID, path,
                          "an input that is not scattered has no samples, and so no lengths");
    }
    if (n_scattered == 0)
        return err_at(err, ERR_JOB_INVALID, model->n_inputs > 1 ? "/model/inputs" : "/model/input",
                      "at least one input must be scattered: its samples make the batch");
    return 0;
}

static bool is_image(const struct job_input *input)
{
    return input->dtype == JOB_FLOAT32 && input->shape.rank == 3;
}

static int check_transform(const struct job *job, struct err *err)
{
    const struct job_data *data = &job->data;
    bool folders = data->train.format == DATA_IMAGE_FOLDER &&
                   (!data->has_validation || data->validation.format == DATA_IMAGE_FOLDER);
    bool images = false;
    for (size_t i = 0; i < job->model.n_inputs; i++)
        images = images || is_image(&job->model.inputs[i]);
    if (data->resize[0] > 0 && !folders)
        return err_at(err, ERR_JOB_INVALID, "/data/transform/resize",
                      "only image_folder data is resized");
    if (!images && (data->has_random_crop || data->random_flip))
        return err_at(err, ERR_JOB_INVALID, "/data/transform",
                      "random_crop and random_flip are for inputs of float32 [C, H, W]");
    return 0;
}

int job_check_data(const struct job *job, struct err *err)
{
    int rc = check_scatter(job, err);
    if (rc == 0)
        rc = check_source(job, &job->data.train, "/data/train", err);
    if (rc == 0 && job->data.has_validation)
        rc = check_source(job, &job->data.validation, "/data/validation", err);
    return rc != 0 ? rc : check_transform(job, err);
}
