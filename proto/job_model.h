/* job_model.h: a job's model: its inputs, its layers, its weights at the beginning. */
#ifndef PROTO_JOB_MODEL_H
#define PROTO_JOB_MODEL_H

#include "proto/job_layer.h"

enum job_dtype { JOB_FLOAT32, JOB_INT64 };

#define JOB_SOLE_INPUT "input" /* the name of a model's only input, unless it is given another */

struct job_input {
    char *name;             /* unique among inputs and layers */
    struct job_shape shape; /* of one sample */
    enum job_dtype dtype;
    bool scatter; /* false: no samples, the whole reaches every replica */
    bool lengths; /* the data says how many of a sample's steps (its first dimension) are valid */
};

struct job_init {
    int64_t seed;  /* defaults to train.seed; unused where weights are given */
    char *weights; /* path of a safetensors file, or NULL */
    bool strict;
    char **fresh; /* names of layers that the weights leave alone, see job_layer */
    size_t n_fresh;
};

struct job_model {
    struct job_input *inputs;
    size_t n_inputs; /* >= 1 */
    struct job_layer *layers;
    size_t n_layers; /* >= 1 */
    struct job_init init;
    char **freeze; /* names of layers that are not trained, see job_layer */
    size_t n_freeze;
};

#endif
