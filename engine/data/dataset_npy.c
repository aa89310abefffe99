/* dataset_npy.c: inputs, targets and lengths from .npy files. */
#include "engine/data/dataset_arrays.h"
#include "engine/data/npy.h"

static int npy_read(const struct arrays_reader *reader, const char *name, struct array *ret_array,
                    struct err *err)
{
    (void)reader;
    return npy_open(name, ret_array, err);
}

static int open_npy(const struct job_source *source, const struct dataset_want *want,
                    const char *what, struct dataset_content *ret_content, struct err *err)
{
    const struct arrays_reader reader = {.read = npy_read};
    return arrays_open(source, want, what, &reader, ret_content, err);
}

const struct dataset_format dataset_format_npy = {
    .open = open_npy,
    .close = arrays_close,
    .input = arrays_input,
    .labels = arrays_labels,
    .values = arrays_values,
};
