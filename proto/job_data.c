/* job_data.c: every key of a job document's data. */
#include "proto/job.h"
#include "proto/job_rows.h"

static const struct field random_rows[] = {
    {"samples", FIELD_INT, "How many samples there are", AT(job_source, samples), REQUIRED,
     RANGE(1, COUNT_MAX)},
    {"seed", FIELD_INT, "Of the generator", AT(job_source, seed), DEFAULT("0"),
     RANGE(0, INT64_MAX)},
    {"classes", FIELD_INT,
     "Targets are labels below this; without it they are normal, of the output's shape",
     AT(job_source, classes), RANGE(2, DIM_MAX)},
    {0},
};

static const struct field idx_rows[] = {
    {"inputs", FIELD_TEXTS, "An IDX file of samples, gz or not; one an input where there are more",
     AT(job_source, inputs), REQUIRED, RANGE(1, PATH_MOST)},
    {"targets", FIELD_PATH, "An IDX file of labels or targets, gz or not; predictions need none",
     AT(job_source, targets), RANGE(1, PATH_MOST)},
    {"lengths", FIELD_TEXTS, "An IDX file of integers: the valid steps of each sample",
     AT(job_source, lengths), RANGE(1, PATH_MOST)},
    {0},
};

static const struct field npy_rows[] = {
    {"inputs", FIELD_TEXTS, "A .npy file of samples; one an input where there are more",
     AT(job_source, inputs), REQUIRED, RANGE(1, PATH_MOST)},
    {"targets", FIELD_PATH, "A .npy file of labels or targets; predictions need none",
     AT(job_source, targets), RANGE(1, PATH_MOST)},
    {"lengths", FIELD_TEXTS, "A .npy file of integers: the valid steps of each sample",
     AT(job_source, lengths), RANGE(1, PATH_MOST)},
    {0},
};

static const struct field safetensors_rows[] = {
    {"path", FIELD_PATH, "A safetensors file", AT(job_source, path), REQUIRED, RANGE(1, PATH_MOST)},
    {"inputs", FIELD_TEXTS, "The tensor of samples; one an input where there are more",
     AT(job_source, inputs), DEFAULT("\"inputs\""), RANGE(1, LIMIT_NAME_BYTES)},
    {"targets", FIELD_PATH, "The tensor of labels or targets; predictions need none",
     AT(job_source, targets), DEFAULT("\"targets\""), RANGE(1, LIMIT_NAME_BYTES)},
    {"lengths", FIELD_TEXTS, "The tensor of integers that are the valid steps of each sample",
     AT(job_source, lengths), RANGE(1, LIMIT_NAME_BYTES)},
    {0},
};

static const struct field cifar_rows[] = {
    {"path", FIELD_PATH, "A file of the binary version, or the folder of all of them",
     AT(job_source, path), REQUIRED, RANGE(1, PATH_MOST)},
    {0},
};

static const struct field csv_rows[] = {
    {"path", FIELD_PATH, "A table of numbers, gz or not", AT(job_source, path), REQUIRED,
     RANGE(1, PATH_MOST)},
    {"target", FIELD_COLUMN, "The column of targets: its name, or its index from 0; -1 is the last",
     AT(job_source, target), DEFAULT("-1"), RANGE(-1, DIM_MAX)},
    {"header", FIELD_TRISTATE,
     "Whether the first line names the columns; auto: if it is not all "
     "numbers",
     AT(job_source, header), DEFAULT("\"auto\"")},
    {0},
};

static const struct field image_folder_rows[] = {
    {"path", FIELD_PATH, "A folder of a folder a class, with JPEG and PNG files",
     AT(job_source, path), REQUIRED, RANGE(1, PATH_MOST)},
    {0},
};

#define CONTEXT_ROW                                                                                \
    {                                                                                              \
        "context", FIELD_INT, "How many a sample has; its targets are the next ones",              \
            AT(job_source, context), REQUIRED, RANGE(1, DIM_MAX)                                   \
    }

static const struct field tokens_rows[] = {
    {"path", FIELD_PATH, "A file of ids, little-endian", AT(job_source, path), REQUIRED,
     RANGE(1, PATH_MOST)},
    {"dtype", FIELD_CHOICE, "Of an id", AT(job_source, dtype), DEFAULT("\"uint16\""),
     CHOICES(OPTION("uint16", TOKEN_UINT16), OPTION("uint32", TOKEN_UINT32))},
    CONTEXT_ROW,
    {0},
};

static const struct field text_rows[] = {
    {"path", FIELD_PATH, "A file of bytes, each an id", AT(job_source, path), REQUIRED,
     RANGE(1, PATH_MOST)},
    CONTEXT_ROW,
    {0},
};

static const struct choice formats[] = {
    {"random", DATA_RANDOM, random_rows, NULL},
    {"idx", DATA_IDX, idx_rows, NULL},
    {"npy", DATA_NPY, npy_rows, NULL},
    {"safetensors", DATA_SAFETENSORS, safetensors_rows, NULL},
    {"cifar10", DATA_CIFAR10, cifar_rows, NULL},
    {"cifar100", DATA_CIFAR100, cifar_rows, NULL},
    {"csv", DATA_CSV, csv_rows, NULL},
    {"image_folder", DATA_IMAGE_FOLDER, image_folder_rows, NULL},
    {"tokens", DATA_TOKENS, tokens_rows, NULL},
    {"text", DATA_TEXT, text_rows, NULL},
    {0},
};

static const struct field source_rows[] = {
    {"format", FIELD_CHOICE, "Where samples come from", AT(job_source, format), REQUIRED,
     .choices = formats},
    {0},
};

static const struct object_def source_object = {
    .what = "a data source", .fields = source_rows, .tagged = true};

static const struct field crop_rows[] = {
    {"padding", FIELD_INT, "Zeros around before the crop", AT(job_data, crop_padding), DEFAULT("0"),
     RANGE(0, DIM_MAX)},
    {0},
};

static const struct object_def crop_object = {.what = "random_crop", .fields = crop_rows};

static const struct field transform_rows[] = {
    {"scale", FIELD_NUMBERS, "Each input is (x * scale - mean) / std; one number or one a channel",
     AT(job_data, scale), DEFAULT("1"), RANGE(1, CHANNELS_MAX), REALS(-REAL_MAX, REAL_MAX)},
    {"mean", FIELD_NUMBERS, "See scale", AT(job_data, mean), DEFAULT("0"), RANGE(1, CHANNELS_MAX),
     REALS(-REAL_MAX, REAL_MAX)},
    {"std", FIELD_NUMBERS, "See scale", AT(job_data, std), DEFAULT("1"), RANGE(1, CHANNELS_MAX),
     REALS(0, REAL_MAX), .flags = FIELD_ABOVE},
    {"resize", FIELD_PAIR, "Height and width that images are brought to first",
     AT(job_data, resize), RANGE(1, DIM_MAX)},
    {"random_crop", FIELD_OBJECT, "A window of the input's size anywhere; validation: the middle",
     .aux = offsetof(struct job_data, has_random_crop), .flags = FIELD_OPTIONAL,
     .object = &crop_object},
    {"random_flip", FIELD_BOOL, "Half of the samples left to right", AT(job_data, random_flip),
     DEFAULT("false")},
    {0},
};

static const struct object_def transform_object = {.what = "transform", .fields = transform_rows};

static const struct field data_rows[] = {
    {"train", FIELD_OBJECT, "What the model is trained on", AT(job_data, train), REQUIRED,
     .object = &source_object},
    {"validation", FIELD_OBJECT, "What it is measured on", AT(job_data, validation),
     .aux = offsetof(struct job_data, has_validation), .flags = FIELD_OPTIONAL,
     .object = &source_object},
    {"transform", FIELD_OBJECT, "Done to every input", DEFAULT("{}"), .object = &transform_object},
    {"shuffle", FIELD_BOOL, "A new order every epoch; false: the file's", AT(job_data, shuffle),
     DEFAULT("true")},
    {"drop_last", FIELD_BOOL, "Leave out an epoch's last batch if it is short",
     AT(job_data, drop_last), DEFAULT("false")},
    {"workers", FIELD_INT, "Threads that read and transform", AT(job_data, workers), DEFAULT("1"),
     RANGE(1, LIMIT_WORKERS)},
    {0},
};

const struct object_def job_data_object = {.what = "data", .fields = data_rows};
