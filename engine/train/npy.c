#include "engine/train/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/file.h"

enum { ALIGN = 64 }; /* of the array's first byte */

/* "(100, 10, )" */
static void print_shape(char *text, size_t size, int64_t rows, const struct shape *row)
{
    size_t used = (size_t)snprintf(text, size, "(%" PRId64 ", ", rows);
    for (int i = 0; i < row->rank; i++)
        used += (size_t)snprintf(text + used, size - used, "%" PRId64 ", ", row->dim[i]);
    snprintf(text + used, size - used, ")");
}

int npy_create(const char *path, int64_t rows, const struct shape *row, struct npy *ret_npy,
               struct err *err)
{
    char header[4 * ALIGN] = "\x93NUMPY\x01", shape[SHAPE_TEXT];
    struct npy npy = {.fd = -1};
    print_shape(shape, sizeof shape, rows, row);
    size_t n =
        10 + (size_t)snprintf(header + 10, sizeof header - 10,
                              "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape);
    size_t size = (n + ALIGN) / ALIGN * ALIGN;
    memset(header + n, ' ', size - n);
    header[size - 1] = '\n';
    header[8] = (char)((size - 10) & 0xff);
    header[9] = (char)((size - 10) >> 8);
    int rc = file_path(npy.path, err, "%s", path);
    if (rc == 0)
        rc = file_create(path, &npy.fd, err);
    if (rc == 0)
        rc = file_write(npy.fd, header, size, path, err);
    if (rc != 0)
        npy_close(&npy);
    else
        *ret_npy = npy;
    return rc;
}

int npy_write(struct npy *npy, const float *elements, size_t n, struct err *err)
{
    return file_write(npy->fd, elements, n * sizeof *elements, npy->path, err);
}

int npy_sync(struct npy *npy, struct err *err)
{
    return fsync(npy->fd) < 0 ? err_errno(err, errno, "cannot sync %s", npy->path) : 0;
}

void npy_close(struct npy *npy)
{
    if (npy->fd >= 0)
        close(npy->fd);
    npy->fd = -1;
}
