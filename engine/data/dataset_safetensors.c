/* dataset_safetensors.c: inputs, targets and lengths from the tensors of one safetensors file. */
#include "engine/base/safetensors.h"
#include "engine/data/dataset_arrays.h"

static const enum array_kind kinds[DTYPE_COUNT] = {
    [DTYPE_F32] = ARRAY_FLOAT32, [DTYPE_F64] = ARRAY_FLOAT64, [DTYPE_I64] = ARRAY_INT64,
    [DTYPE_U8] = ARRAY_UINT8,    [DTYPE_I8] = ARRAY_INT8,     [DTYPE_I16] = ARRAY_INT16,
    [DTYPE_I32] = ARRAY_INT32,
};

static int read_tensor(const struct arrays_reader *reader, const char *name,
                       struct array *ret_array, struct err *err)
{
    char text[SHAPE_TEXT];
    const struct safetensor *tensor = safetensors_find(reader->file, name);
    if (tensor == NULL)
        return err_set(err, ERR_DATA_INVALID, "%s: there is no tensor of that name", name);
    if (tensor->shape.rank == 0 || tensor->bytes == 0)
        return err_set(err, ERR_DATA_INVALID, "%s: its shape %s holds no samples", name,
                       shape_format(&tensor->shape, text));
    *ret_array = (struct array){.shape = tensor->shape,
                                .type = &array_little[kinds[tensor->dtype]],
                                .data = tensor->data,
                                .bytes = tensor->bytes};
    return 0;
}

static bool holds_tensor(const struct arrays_reader *reader, const char *name)
{
    return safetensors_find(reader->file, name) != NULL;
}

static void close_file(void *file)
{
    safetensors_close(file);
}

static int open_safetensors(const struct job_source *source, const struct dataset_want *want,
                            const char *what, struct dataset_content *ret_content, struct err *err)
{
    struct safetensors *file;
    int rc = safetensors_open(source->path, &file, err);
    if (rc == ERR_WEIGHTS_INVALID)
        err->code = ERR_DATA_INVALID; /* the reader's word for a broken file */
    if (rc != 0)
        return dataset_blame(err, what, "path");
    const struct arrays_reader reader = {
        .read = read_tensor, .holds = holds_tensor, .file = file, .close = close_file};
    rc = arrays_open(source, want, what, &reader, ret_content, err);
    return rc == 0 ? 0 : err_context(err, "%s", source->path);
}

const struct dataset_format dataset_format_safetensors = {
    .open = open_safetensors,
    .close = arrays_close,
    .input = arrays_input,
    .labels = arrays_labels,
    .values = arrays_values,
};
