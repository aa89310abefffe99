/* dataset_idx.c: inputs, targets and lengths from IDX files, plain or gz. */
#include "engine/data/dataset_arrays.h"
#include "engine/data/idx.h"

static int idx_open(const struct job_source *source, const struct dataset_want *want,
                    const char *what, struct dataset_content *ret_content, struct err *err)
{
    return arrays_open(source, want, what, idx_read, ret_content, err);
}

const struct dataset_format dataset_format_idx = {
    .open = idx_open,
    .close = arrays_close,
    .input = arrays_input,
    .labels = arrays_labels,
    .values = arrays_values,
};
