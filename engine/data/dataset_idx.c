/* dataset_idx.c: inputs, targets and lengths from IDX files, plain or gz. */
#include "engine/data/dataset_arrays.h"
#include "engine/data/idx.h"

static int read_idx(const struct arrays_reader *reader, const char *name, struct array *ret_array,
                    struct err *err)
{
    (void)reader;
    return idx_read(name, ret_array, err);
}

static int open_idx(const struct job_source *source, const struct dataset_want *want,
                    const char *what, struct dataset_content *ret_content, struct err *err)
{
    const struct arrays_reader reader = {.read = read_idx};
    return arrays_open(source, want, what, &reader, ret_content, err);
}

const struct dataset_format dataset_format_idx = {
    .open = open_idx,
    .close = arrays_close,
    .input = arrays_input,
    .labels = arrays_labels,
    .values = arrays_values,
};
