/* dataset_format.h: what a file format offers to dataset.c: one row of its table, one file.
 *
 * A format gives raw values; the transform and one-hot rows are dataset.c's. Once open a state is
 * immutable and any thread may read it.
 */
#ifndef ENGINE_DATA_DATASET_FORMAT_H
#define ENGINE_DATA_DATASET_FORMAT_H

#include "engine/data/dataset.h"

struct dataset_content { /* what a format found */
    void *state;
    int64_t samples; /* >= 1 */
    bool labels;     /* targets are class numbers: `label` is called, else `values` */
    uint64_t fingerprint;
};

struct dataset_format {
    /* `what` is the source's JSON Pointer. Labels are checked against want->classes here. Errors:
     * ERR_IO, ERR_DATA_INVALID, ERR_NOMEM. */
    int (*open)(const struct job_source *source, const struct dataset_want *want, const char *what,
                struct dataset_content *ret_content, struct err *err);
    void (*close)(void *state);
    void (*input)(const void *state, int64_t sample, float *ret_input);
    int64_t (*label)(const void *state, int64_t sample);
    void (*values)(const void *state, int64_t sample, float *ret_target);
};

extern const struct dataset_format dataset_format_random;
extern const struct dataset_format dataset_format_idx;

/* Sets err->path to "what/member"; returns err->code. */
int dataset_blame(struct err *err, const char *what, const char *member);

#endif
