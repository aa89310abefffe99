/* safetensors_write.c: the writer. Like the reference's it puts the widest types first, so that
 * every tensor lies aligned without holes, which the format forbids.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/safetensors.h"
#include "proto/json.h"

enum { HEADER_ALIGN = 8 };

/* The tensors in the order in which they are written; the caller frees. */
static const struct safetensor **sort_by_width(const struct safetensor *tensors, size_t n)
{
    const struct safetensor **sorted = calloc(n + 1, sizeof *sorted);
    if (sorted == NULL)
        return NULL;
    size_t placed = 0;
    for (size_t width = 8; width >= 1; width /= 2)
        for (size_t i = 0; i < n; i++)
            if (dtype_size(tensors[i].dtype) == width)
                sorted[placed++] = &tensors[i];
    return sorted;
}

static json_t *shape_array(const struct shape *shape)
{
    json_t *array = json_array();
    for (int i = 0; i < shape->rank; i++) {
        if (json_array_append_new(array, json_integer(shape->dim[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *describe(const struct safetensor *tensor, size_t offset)
{
    /* json_pack takes the shape over even where it fails; it fails where the shape is NULL. */
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_name(tensor->dtype), "shape",
                     shape_array(&tensor->shape), "data_offsets", (json_int_t)offset,
                     (json_int_t)(offset + tensor->bytes));
}

/* The header's text without its padding; the caller frees. NULL without memory. */
static char *header_text(const struct safetensor *const *sorted, size_t n, const json_t *metadata)
{
    char *text = NULL;
    json_t *header = json_object();
    size_t offset = 0;
    if (metadata != NULL && json_object_set(header, "__metadata__", (json_t *)metadata) < 0)
        goto out;
    for (size_t i = 0; i < n; i++) {
        if (json_object_set_new(header, sorted[i]->name, describe(sorted[i], offset)) < 0)
            goto out;
        offset += sorted[i]->bytes;
    }
    text = json_line(header);
out:
    json_decref(header);
    return text;
}

static int write_header(int fd, const char *text, const char *path, struct err *err)
{
    static const char spaces[HEADER_ALIGN + 1] = "        ";
    size_t bytes = strlen(text);
    size_t padding = (HEADER_ALIGN - bytes % HEADER_ALIGN) % HEADER_ALIGN;
    uint64_t prefix = htole64(bytes + padding);
    int rc = file_write(fd, &prefix, sizeof prefix, path, err);
    if (rc == 0)
        rc = file_write(fd, text, bytes, path, err);
    return rc != 0 ? rc : file_write(fd, spaces, padding, path, err);
}

int safetensors_write(const char *path, const struct safetensor *tensors, size_t n,
                      const json_t *metadata, struct err *err)
{
    int rc = 0, fd = -1;
    const struct safetensor **sorted = sort_by_width(tensors, n);
    char *text = sorted != NULL ? header_text(sorted, n, metadata) : NULL;
    if (text == NULL) {
        rc = err_set(err, ERR_NOMEM, "no memory to write %s", path);
        goto out;
    }
    rc = file_create(path, &fd, err);
    if (rc != 0)
        goto out;
    rc = write_header(fd, text, path, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = file_write(fd, sorted[i]->data, sorted[i]->bytes, path, err);
    if (rc == 0 && fsync(fd) < 0)
        rc = err_errno(err, errno, "cannot sync %s", path);
out:
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = err_errno(err, errno, "cannot write %s", path);
    free(text);
    free(sorted);
    return rc;
}
