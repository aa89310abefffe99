/* rows.c: see rows.h. */
#include "engine/parallel/rows.h"

static size_t sample_bytes(const struct shape *shape, enum dtype dtype)
{
    return (size_t)shape_count(shape) * dtype_size(dtype);
}

size_t rows_data_bytes(const struct model *model, int input, int64_t samples)
{
    return (size_t)samples * sample_bytes(&model->inputs[input].shape, model->inputs[input].dtype);
}

size_t rows_target_bytes(const struct model *model, int64_t samples)
{
    return (size_t)samples * sample_bytes(&model->target, model->target_dtype);
}

struct batch rows_of(const struct model *model, const struct batch *batch, int64_t first, int64_t n)
{
    struct batch rows = {
        .n = n,
        .targets = (const char *)batch->targets + rows_target_bytes(model, first),
    };
    for (int i = 0; i < model->n_inputs; i++)
        rows.inputs[i] = (const char *)batch->inputs[i] + rows_data_bytes(model, i, first);
    return rows;
}
