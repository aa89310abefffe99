/* dataset.h: samples by index, whatever the file format. Immutable once open; any thread may
 * gather. */
#ifndef ENGINE_DATA_DATASET_H
#define ENGINE_DATA_DATASET_H

#include "engine/base/dtype.h"
#include "engine/base/shape.h"
#include "proto/err.h"
#include "proto/job.h"

struct dataset;

struct dataset_want {           /* what the model takes */
    struct shape input, target; /* of one sample */
    enum dtype target_dtype; /* DTYPE_I64: class numbers; DTYPE_F32: values, or class numbers made
                                one-hot rows */
    int64_t classes;         /* labels lie in [0, classes); 0: no labels */
};

/* `what` names the source in errors ("/data/train"). Paths are opened as they are (relative to the
 * working directory). Errors: ERR_IO, ERR_DATA_INVALID naming file, what was found, what is wanted;
 * every label is checked here. */
int dataset_open(const struct job_source *source, const struct job_data *data,
                 const struct dataset_want *want, const char *what, struct dataset **ret_dataset,
                 struct err *err);
void dataset_close(struct dataset *dataset);
int64_t dataset_samples(const struct dataset *dataset);
/* A number that changes when the data does (sizes and a hash): a checkpoint refuses another. */
uint64_t dataset_fingerprint(const struct dataset *dataset);
/* Writes n samples: float [n, input], targets int64 [n] or float [n, target]. */
void dataset_gather(const struct dataset *dataset, const int64_t *index, int64_t n, float *inputs,
                    void *targets);

#endif
