/* dataset_arrays.h: the formats whose inputs, targets and lengths are arrays [N, …] (idx, npy,
 * safetensors): what is theirs alone is how an array is opened. */
#ifndef ENGINE_DATA_DATASET_ARRAYS_H
#define ENGINE_DATA_DATASET_ARRAYS_H

#include "engine/data/array.h"
#include "engine/data/dataset_format.h"

struct arrays_reader {
    /* Opens the array of that name. Errors begin with the name: ERR_IO, ERR_DATA_INVALID,
     * ERR_NOMEM. */
    int (*read)(const struct arrays_reader *reader, const char *name, struct array *ret_array,
                struct err *err);
    /* Whether there is an array of that name; NULL: what is named is there. */
    bool (*holds)(const struct arrays_reader *reader, const char *name);
    void *file; /* what the arrays lie in, closed after them; NULL: nothing in common */
    void (*close)(void *file);
};

/* Takes the reader's file, also where it fails. */
int arrays_open(const struct job_source *source, const struct dataset_want *want, const char *what,
                const struct arrays_reader *reader, struct dataset_content *ret_content,
                struct err *err);
void arrays_close(void *state);
int arrays_input(const void *state, int input, int64_t sample, void *ret_input, struct err *err);
int arrays_labels(const void *state, int64_t sample, int64_t *ret_labels, struct err *err);
int arrays_values(const void *state, int64_t sample, float *ret_target, struct err *err);

#endif
