/* dataset_format.h: what a file format offers to dataset.c: one row of its table, one file.
 *
 * A format gives raw values; the transform, one-hot rows and the check of what is gathered are
 * dataset.c's. Once open a state is immutable and any thread may read it.
 */
#ifndef ENGINE_DATA_DATASET_FORMAT_H
#define ENGINE_DATA_DATASET_FORMAT_H

#include "engine/data/dataset.h"
#include "engine/data/image.h"

struct dataset_content { /* what a format found */
    void *state;
    int64_t samples; /* >= 1 */
    bool labels;     /* targets are class numbers: `labels` is called, else `values` */
    bool untargeted; /* there are none, and neither is called */
    uint64_t fingerprint;
};

struct dataset_format {
    /* `what` is the source's JSON Pointer. Where a sample has one label, all are checked here.
     * Errors: ERR_IO, ERR_DATA_INVALID, ERR_NOMEM. */
    int (*open)(const struct job_source *source, const struct dataset_want *want, const char *what,
                struct dataset_content *ret_content, struct err *err);
    void (*close)(void *state);
    /* One sample of want->inputs[input]: floats or int64s, as that says; its labels, as many as
     * the target has elements; its target. Errors: ERR_IO, ERR_DATA_INVALID. */
    int (*input)(const void *state, int input, int64_t sample, void *ret_input, struct err *err);
    /* Instead of `input`: the one input as an image of its own size, of 1 or 3 channels. *ret_name
     * names it in messages and lives as long as the state. */
    int (*image)(const void *state, int64_t sample, int channels, struct image *ret_image,
                 const char **ret_name, struct err *err);
    int (*labels)(const void *state, int64_t sample, int64_t *ret_labels, struct err *err);
    int (*values)(const void *state, int64_t sample, float *ret_target, struct err *err);
};

extern const struct dataset_format dataset_format_random;
extern const struct dataset_format dataset_format_idx;
extern const struct dataset_format dataset_format_npy;
extern const struct dataset_format dataset_format_safetensors;
extern const struct dataset_format dataset_format_cifar10;
extern const struct dataset_format dataset_format_cifar100;
extern const struct dataset_format dataset_format_csv;
extern const struct dataset_format dataset_format_image_folder;
extern const struct dataset_format dataset_format_tokens;
extern const struct dataset_format dataset_format_text;

/* Sets err->path to "what/member"; returns err->code. */
int dataset_blame(struct err *err, const char *what, const char *member);
/* Whether each of n labels lies in [0, classes). Errors: ERR_DATA_INVALID: "`where`: sample 3 has
 * label 10, …". */
int dataset_check_labels(const struct dataset_want *want, const char *where, int64_t sample,
                         const int64_t *labels, int64_t n, struct err *err);

#endif
