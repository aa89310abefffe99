/* dataset.h: samples by index, whatever the file format. Immutable once open; any thread may
 * gather. */
#ifndef ENGINE_DATA_DATASET_H
#define ENGINE_DATA_DATASET_H

#include "engine/graph/model.h"
#include "proto/err.h"
#include "proto/job.h"

struct dataset;

struct dataset_want { /* what the model takes */
    const struct model_input *inputs;
    int n_inputs;
    struct shape target;     /* of one sample */
    enum dtype target_dtype; /* DTYPE_I64: class numbers; DTYPE_F32: values, or class numbers made
                                one-hot rows */
    int64_t classes;         /* labels lie in [0, classes); 0: no labels */
    const int64_t *ignored;  /* a label that is allowed all the same; NULL: none */
    bool predicting;         /* targets may be missing */
    bool training;           /* random transforms are made; the training part of what has two */
    uint64_t seed;           /* of random transforms */
};

struct dataset_rows { /* samples in the order of an epoch */
    const int64_t *index;
    int64_t n;
    int64_t epoch, first; /* index[0] is the sample at position `first` of the epoch's order */
};

/* `what` names the source in errors ("/data/train"). Paths are opened as they are (relative to the
 * working directory). Errors: ERR_IO, ERR_DATA_INVALID naming file, what was found, what is wanted;
 * every label of a sample is checked here, sequences of them when they are gathered. */
int dataset_open(const struct job_source *source, const struct job_data *data,
                 const struct dataset_want *want, const char *what, struct dataset **ret_dataset,
                 struct err *err);
void dataset_close(struct dataset *dataset);
int64_t dataset_samples(const struct dataset *dataset);
/* False only where predictions are made: zeros stand for the targets. */
bool dataset_has_targets(const struct dataset *dataset);
/* A number that changes when the data does (sizes and a hash): a checkpoint refuses another. */
uint64_t dataset_fingerprint(const struct dataset *dataset);

int dataset_inputs(const struct dataset *dataset);
/* Bytes of one sample of an input; of its target. */
size_t dataset_input_bytes(const struct dataset *dataset, int input);
size_t dataset_target_bytes(const struct dataset *dataset);
/* Writes the samples: each input float or int64 [n, shape], the targets int64 or float [n, target].
 * Errors: ERR_IO, ERR_DATA_INVALID naming the sample. */
int dataset_gather(const struct dataset *dataset, const struct dataset_rows *rows,
                   void *const *inputs, void *targets, struct err *err);

#endif
