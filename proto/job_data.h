/* job_data.h: what a job document says of its data; a part of job.h. */
#ifndef PROTO_JOB_DATA_H
#define PROTO_JOB_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/job_values.h"

struct job_texts { /* one for the only input, or one an input */
    size_t n;      /* 0: not given */
    char **names;  /* of the inputs; NULL: there is only one */
    char **texts;
};

/* The text for the input of that name; NULL: there is none. */
const char *job_texts_find(const struct job_texts *texts, const char *name);

struct job_column { /* by name, or by index */
    char *name;     /* NULL: by index */
    int64_t index;  /* from 0; -1: the last */
};

enum job_tristate { JOB_AUTO, JOB_TRUE, JOB_FALSE };

enum data_format {
    DATA_RANDOM,
    DATA_IDX,
    DATA_NPY,
    DATA_SAFETENSORS,
    DATA_CIFAR10,
    DATA_CIFAR100,
    DATA_CSV,
    DATA_IMAGE_FOLDER,
    DATA_TOKENS,
    DATA_TEXT,
    DATA_FORMAT_COUNT
};

enum token_type { TOKEN_UINT16, TOKEN_UINT32 };

/* Paths are absolute or relative to the submission's directory. */
struct job_source {
    enum data_format format;
    int64_t samples, seed, classes;   /* random; classes 0: targets of the output's shape */
    struct job_texts inputs, lengths; /* idx, npy: paths; safetensors: names; lengths only of inputs
                                         that have them */
    char *targets;                    /* idx, npy: a path, NULL: none; safetensors: a name */
    char *path;                       /* the others: a file, or a folder */
    struct job_column target;         /* csv */
    enum job_tristate header;         /* csv */
    enum token_type dtype;            /* tokens */
    int64_t context;                  /* tokens, text: elements of a sample */
};

struct job_data {
    struct job_source train, validation;
    bool has_validation;
    struct job_numbers scale, mean, std; /* (x * scale - mean) / std */
    int64_t resize[2];                   /* of images: height and width; 0: as they are */
    bool has_random_crop;                /* while training; the middle else */
    int64_t crop_padding;                /* zeros around before the crop */
    bool random_flip;                    /* left to right, half of the samples, while training */
    bool shuffle, drop_last;
    int64_t workers; /* threads that make a batch */
};

#endif
