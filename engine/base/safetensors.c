/* safetensors.c: uint64 header size, JSON header, tensors:
 * https://github.com/huggingface/safetensors
 */
#include "engine/base/safetensors.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "proto/json.h"

enum {
    PREFIX_BYTES = 8, /* the header's size */
    HEADER_MAX_BYTES = 100 * 1000 * 1000
};

struct safetensors {
    const char *path; /* borrowed while opening */
    struct file_map map;
    json_t *header;                    /* names live here */
    struct safetensor *tensors;        /* in the file's order */
    const struct safetensor **by_name; /* the same, sorted */
    size_t n;
};

#define FAULT(file, err, format, ...)                                                              \
    err_set(err, ERR_WEIGHTS_INVALID, "%s: " format, (file)->path, __VA_ARGS__)

static int map_file(struct safetensors *file, struct err *err)
{
    int rc = file_map(file->path, &file->map, err);
    if (rc == 0 && file->map.bytes < PREFIX_BYTES)
        rc = FAULT(file, err, "%zu bytes are too few for a safetensors file", file->map.bytes);
    return rc;
}

static int load_header(struct safetensors *file, size_t *ret_bytes, struct err *err)
{
    uint64_t bytes;
    memcpy(&bytes, file->map.at, sizeof bytes);
    bytes = le64toh(bytes);
    if (bytes > HEADER_MAX_BYTES)
        return FAULT(file, err, "its header would be %" PRIu64 " bytes, at most %d are allowed",
                     bytes, HEADER_MAX_BYTES);
    if (bytes > file->map.bytes - PREFIX_BYTES)
        return FAULT(file, err, "its header of %" PRIu64 " bytes is cut off: the file has %zu",
                     bytes, file->map.bytes);
    const char *text = (const char *)file->map.at + PREFIX_BYTES;
    if (bytes == 0 || text[0] != '{')
        return FAULT(file, err, "its header does not begin with '%c'", '{');
    if (json_load(text, (size_t)bytes, ERR_WEIGHTS_INVALID, &file->header, err) != 0)
        return err_context(err, "%s: the header", file->path);
    *ret_bytes = (size_t)bytes;
    return 0;
}

static int check_metadata(const struct safetensors *file, struct err *err)
{
    const json_t *metadata = json_object_get(file->header, "__metadata__");
    if (metadata == NULL)
        return 0;
    if (!json_is_object(metadata))
        return FAULT(file, err, "%s is not an object", "__metadata__");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)metadata, key, value)
    {
        if (!json_is_string(value))
            return FAULT(file, err, "__metadata__ \"%.64s\" is not a string", key);
    }
    return 0;
}

static int read_dtype(const struct safetensors *file, const json_t *entry,
                      struct safetensor *tensor, struct err *err)
{
    const char *name = json_string_value(json_object_get(entry, "dtype"));
    for (int d = 0; name != NULL && d < DTYPE_COUNT; d++) {
        if (strcmp(name, dtype_name((enum dtype)d)) == 0) {
            tensor->dtype = (enum dtype)d;
            return 0;
        }
    }
    return FAULT(file, err, "tensor \"%.128s\": dtype %.32s is not one that is read here",
                 tensor->name, name != NULL ? name : "(none)");
}

static int read_shape(const struct safetensors *file, const json_t *entry,
                      struct safetensor *tensor, struct err *err)
{
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape))
        return FAULT(file, err, "tensor \"%.128s\": its shape is not a list", tensor->name);
    if (json_array_size(shape) > LIMIT_RANK)
        return FAULT(file, err, "tensor \"%.128s\": %zu dimensions, at most %d are read here",
                     tensor->name, json_array_size(shape), LIMIT_RANK);
    tensor->shape.rank = (int)json_array_size(shape);
    char found[96];
    for (int i = 0; i < tensor->shape.rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return FAULT(file, err,
                         "tensor \"%.128s\": dimension %d is %s, want an integer of 0 or more",
                         tensor->name, i, json_describe(dim, found));
        tensor->shape.dim[i] = json_integer_value(dim);
    }
    int64_t count = shape_count(&tensor->shape);
    size_t size = dtype_size(tensor->dtype);
    if (count < 0 || (uint64_t)count > SIZE_MAX / size)
        return FAULT(file, err, "tensor \"%.128s\": its shape is beyond any memory", tensor->name);
    tensor->bytes = (size_t)count * size;
    return 0;
}

static int read_offsets(const struct safetensors *file, const json_t *entry, const uint8_t *data,
                        size_t data_bytes, struct safetensor *tensor, struct err *err)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return FAULT(file, err, "tensor \"%.128s\": data_offsets are not two integers",
                     tensor->name);
    json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > data_bytes)
        return FAULT(file, err,
                     "tensor \"%.128s\": data_offsets [%lld, %lld] do not lie in the %zu bytes of "
                     "tensors",
                     tensor->name, (long long)begin, (long long)end, data_bytes);
    if ((size_t)(end - begin) != tensor->bytes)
        return FAULT(file, err,
                     "tensor \"%.128s\": data_offsets [%lld, %lld] for %zu bytes of dtype and "
                     "shape",
                     tensor->name, (long long)begin, (long long)end, tensor->bytes);
    tensor->data = data + begin;
    return 0;
}

static int read_tensor(const struct safetensors *file, const char *name, const json_t *entry,
                       const uint8_t *data, size_t data_bytes, struct safetensor *tensor,
                       struct err *err)
{
    tensor->name = name;
    if (!json_is_object(entry))
        return FAULT(file, err, "tensor \"%.128s\" is not described by an object", name);
    int rc = read_dtype(file, entry, tensor, err);
    if (rc == 0)
        rc = read_shape(file, entry, tensor, err);
    return rc != 0 ? rc : read_offsets(file, entry, data, data_bytes, tensor, err);
}

static int by_place(const void *a, const void *b)
{
    const struct safetensor *left = a, *right = b;
    if (left->data != right->data)
        return (const uint8_t *)left->data < (const uint8_t *)right->data ? -1 : 1;
    if (left->bytes != right->bytes) /* an empty tensor stands before the one at its place */
        return left->bytes < right->bytes ? -1 : 1;
    return strcmp(left->name, right->name);
}

static int by_name(const void *a, const void *b)
{
    const struct safetensor *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static int index_names(struct safetensors *file, struct err *err)
{
    file->by_name = calloc(file->n + 1, sizeof *file->by_name);
    if (file->by_name == NULL)
        return err_set(err, ERR_NOMEM, "no memory to read %s", file->path);
    for (size_t i = 0; i < file->n; i++)
        file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, file->n, sizeof *file->by_name, by_name);
    return 0;
}

/* Every byte behind the header belongs to exactly one tensor. */
static int check_cover(const struct safetensors *file, const uint8_t *data, size_t data_bytes,
                       struct err *err)
{
    size_t covered = 0;
    for (size_t i = 0; i < file->n; i++) {
        const struct safetensor *tensor = &file->tensors[i];
        size_t begin = (size_t)((const uint8_t *)tensor->data - data);
        if (begin != covered)
            return FAULT(file, err, "tensor \"%.128s\" begins at byte %zu, want %zu: %s",
                         tensor->name, begin, covered, begin < covered ? "an overlap" : "a hole");
        covered += tensor->bytes;
    }
    if (covered != data_bytes)
        return FAULT(file, err, "its tensors end at byte %zu of %zu", covered, data_bytes);
    return 0;
}

static int read_tensors(struct safetensors *file, size_t header_bytes, struct err *err)
{
    const uint8_t *data = file->map.at + PREFIX_BYTES + header_bytes;
    size_t data_bytes = file->map.bytes - PREFIX_BYTES - header_bytes;
    file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
    if (file->tensors == NULL)
        return err_set(err, ERR_NOMEM, "no memory to read %s", file->path);
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        int rc = read_tensor(file, name, entry, data, data_bytes, &file->tensors[file->n], err);
        if (rc != 0)
            return rc;
        file->n++;
    }
    qsort(file->tensors, file->n, sizeof *file->tensors, by_place);
    return check_cover(file, data, data_bytes, err);
}

int safetensors_open(const char *path, struct safetensors **ret_file, struct err *err)
{
    struct safetensors *file = calloc(1, sizeof *file);
    if (file == NULL)
        return err_set(err, ERR_NOMEM, "no memory to read %s", path);
    file->path = path;
    size_t header_bytes = 0;
    int rc = map_file(file, err);
    if (rc == 0)
        rc = load_header(file, &header_bytes, err);
    if (rc == 0)
        rc = check_metadata(file, err);
    if (rc == 0)
        rc = read_tensors(file, header_bytes, err);
    if (rc == 0)
        rc = index_names(file, err);
    file->path = NULL;
    if (rc == 0)
        *ret_file = file;
    else
        safetensors_close(file);
    return rc;
}

void safetensors_close(struct safetensors *file)
{
    if (file == NULL)
        return;
    file_unmap(&file->map);
    json_decref(file->header);
    free(file->by_name);
    free(file->tensors);
    free(file);
}

size_t safetensors_count(const struct safetensors *file)
{
    return file->n;
}

const struct safetensor *safetensors_at(const struct safetensors *file, size_t i)
{
    return &file->tensors[i];
}

const struct safetensor *safetensors_find(const struct safetensors *file, const char *name)
{
    const struct safetensor key = {.name = name}, *wanted = &key;
    const struct safetensor **found =
        bsearch(&wanted, file->by_name, file->n, sizeof *file->by_name, by_name);
    return found != NULL ? *found : NULL;
}

const json_t *safetensors_all_metadata(const struct safetensors *file)
{
    return json_object_get(file->header, "__metadata__");
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(safetensors_all_metadata(file), key));
}
