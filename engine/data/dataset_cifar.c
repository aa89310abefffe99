/* dataset_cifar.c: CIFAR-10 and CIFAR-100, the binary version:
 * https://www.cs.toronto.edu/~kriz/cifar.html
 *
 * A record is one label byte (CIFAR-100: a coarse one, which is left alone, and the fine one), then
 * 3x32x32 pixels. In the folder of all files training is done on the training files, validation on
 * the test file.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "engine/data/dataset_format.h"

enum { PIXELS = 3 * 32 * 32, FILES_MAX = 5 };

struct cifar_kind {
    int64_t label_bytes; /* the last is the label */
    const char *train[FILES_MAX + 1], *test[FILES_MAX + 1];
};

static const struct cifar_kind cifar10 = {
    1,
    {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
     "data_batch_5.bin"},
    {"test_batch.bin"},
};
static const struct cifar_kind cifar100 = {2, {"train.bin"}, {"test.bin"}};

struct cifar {
    const struct cifar_kind *kind;
    struct file_map maps[FILES_MAX];
    int n_maps;
    int64_t samples;
};

static int64_t record_bytes(const struct cifar *cifar)
{
    return cifar->kind->label_bytes + PIXELS;
}

static const uint8_t *record_at(const struct cifar *cifar, int64_t sample)
{
    int file = 0;
    for (int64_t n; sample >= (n = (int64_t)cifar->maps[file].bytes / record_bytes(cifar)); file++)
        sample -= n;
    return cifar->maps[file].at + sample * record_bytes(cifar);
}

static int64_t label_at(const struct cifar *cifar, int64_t sample)
{
    return record_at(cifar, sample)[cifar->kind->label_bytes - 1];
}

static int check_file(const struct cifar *cifar, const char *path, int64_t first,
                      const struct dataset_want *want, struct err *err)
{
    size_t bytes = cifar->maps[cifar->n_maps - 1].bytes;
    int64_t record = record_bytes(cifar);
    if (bytes == 0 || (int64_t)bytes % record != 0)
        return err_set(err, ERR_DATA_INVALID, "%s: %zu bytes are no records of %lld", path, bytes,
                       (long long)record);
    int rc = 0;
    for (int64_t i = first; i < cifar->samples && rc == 0; i++) {
        int64_t label = label_at(cifar, i);
        rc = dataset_check_labels(want, path, i - first, &label, 1, err);
    }
    return rc;
}

static int add_file(struct cifar *cifar, const char *path, const struct dataset_want *want,
                    struct err *err)
{
    int64_t first = cifar->samples;
    int rc = file_map(path, &cifar->maps[cifar->n_maps], err);
    if (rc != 0)
        return rc;
    cifar->samples += (int64_t)cifar->maps[cifar->n_maps++].bytes / record_bytes(cifar);
    return check_file(cifar, path, first, want, err);
}

static int add_folder(struct cifar *cifar, const char *folder, const struct dataset_want *want,
                      struct err *err)
{
    const char *const *names = want->training ? cifar->kind->train : cifar->kind->test;
    char path[LIMIT_PATH_BYTES];
    int rc = 0;
    for (; *names != NULL && rc == 0; names++) {
        rc = file_path(path, err, "%s/%s", folder, *names);
        if (rc == 0)
            rc = add_file(cifar, path, want, err);
    }
    return rc;
}

static int check_want(const struct dataset_want *want, struct err *err)
{
    char text[SHAPE_TEXT];
    const struct model_input *input = &want->inputs[0];
    if (!shape_equal(&input->shape, &SHAPE(3, 32, 32)) || input->dtype != DTYPE_F32)
        return err_set(err, ERR_DATA_INVALID,
                       "CIFAR images are [3, 32, 32], the model's input is %s",
                       shape_format(&input->shape, text));
    if (want->classes == 0 || (want->target_dtype == DTYPE_I64 && want->target.rank > 0))
        return err_set(err, ERR_DATA_INVALID,
                       "CIFAR has one label an image, the model's output is no row of classes");
    return 0;
}

static void cifar_close(void *state)
{
    struct cifar *cifar = state;
    for (int i = 0; i < cifar->n_maps; i++)
        file_unmap(&cifar->maps[i]);
    free(cifar);
}

static int open_kind(const struct cifar_kind *kind, const struct job_source *source,
                     const struct dataset_want *want, const char *what,
                     struct dataset_content *ret_content, struct err *err)
{
    struct stat st;
    if (check_want(want, err) != 0)
        return dataset_blame(err, what, "format");
    struct cifar *cifar = calloc(1, sizeof *cifar);
    if (cifar == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a data set");
    cifar->kind = kind;
    bool folder = stat(source->path, &st) == 0 && S_ISDIR(st.st_mode);
    int rc = folder ? add_folder(cifar, source->path, want, err)
                    : add_file(cifar, source->path, want, err);
    if (rc != 0) {
        cifar_close(cifar);
        return dataset_blame(err, what, "path");
    }
    uint64_t fingerprint = (uint64_t)source->format;
    for (int i = 0; i < cifar->n_maps; i++)
        fingerprint = hash64(cifar->maps[i].at, cifar->maps[i].bytes, fingerprint);
    *ret_content = (struct dataset_content){
        .state = cifar, .samples = cifar->samples, .labels = true, .fingerprint = fingerprint};
    return 0;
}

static int open_cifar10(const struct job_source *source, const struct dataset_want *want,
                        const char *what, struct dataset_content *ret_content, struct err *err)
{
    return open_kind(&cifar10, source, want, what, ret_content, err);
}

static int open_cifar100(const struct job_source *source, const struct dataset_want *want,
                         const char *what, struct dataset_content *ret_content, struct err *err)
{
    return open_kind(&cifar100, source, want, what, ret_content, err);
}

static int cifar_input(const void *state, int input, int64_t sample, void *ret_input,
                       struct err *err)
{
    (void)input;
    (void)err;
    const struct cifar *cifar = state;
    const uint8_t *pixels = record_at(cifar, sample) + cifar->kind->label_bytes;
    for (int i = 0; i < PIXELS; i++)
        ((float *)ret_input)[i] = pixels[i];
    return 0;
}

static int cifar_labels(const void *state, int64_t sample, int64_t *ret_labels, struct err *err)
{
    (void)err;
    *ret_labels = label_at(state, sample);
    return 0;
}

const struct dataset_format dataset_format_cifar10 = {
    .open = open_cifar10,
    .close = cifar_close,
    .input = cifar_input,
    .labels = cifar_labels,
};
const struct dataset_format dataset_format_cifar100 = {
    .open = open_cifar100,
    .close = cifar_close,
    .input = cifar_input,
    .labels = cifar_labels,
};
