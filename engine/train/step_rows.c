/* step_rows.c: see step_rows.h. */
#include "engine/train/step_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/file.h"

/* Length of the rows that stay. The rows are our own, so their beginning is enough. */
static int scan(FILE *stream, const char *path, int64_t step, step_rows_fn *kept, void *context,
                off_t *ret_bytes, struct err *err)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    *ret_bytes = 0;
    while ((n = getline(&line, &size, stream)) > 0 && line[n - 1] == '\n') {
        int64_t row_step;
        if (sscanf(line, "{\"step\": %" SCNd64 ",", &row_step) != 1 || row_step > step)
            break;
        if (kept != NULL)
            kept(context, row_step, line);
        *ret_bytes += n;
    }
    int failed = n < 0 && !feof(stream) ? errno : 0;
    free(line);
    return failed == 0 ? 0 : err_errno(err, failed, "cannot read %s", path);
}

static int cut(struct step_rows *rows, int64_t step, step_rows_fn *kept, void *context,
               struct err *err)
{
    off_t bytes;
    FILE *stream = fopen(rows->path, "re");
    if (stream == NULL)
        return err_errno(err, errno, "cannot open %s", rows->path);
    int rc = scan(stream, rows->path, step, kept, context, &bytes, err);
    fclose(stream);
    if (rc == 0 && ftruncate(rows->fd, bytes) < 0)
        rc = err_errno(err, errno, "cannot cut %s", rows->path);
    return rc;
}

int step_rows_open(const char *output, const char *name, int64_t step, step_rows_fn *kept,
                   void *context, struct step_rows *ret_rows, struct err *err)
{
    struct step_rows rows = {.fd = -1};
    int rc = file_path(rows.path, err, "%s/%s", output, name);
    if (rc == 0)
        rc = file_append(rows.path, &rows.fd, err);
    if (rc != 0)
        return rc;
    rc = cut(&rows, step, kept, context, err);
    if (rc == 0)
        *ret_rows = rows;
    else
        step_rows_close(&rows);
    return rc;
}

int step_rows_write(struct step_rows *rows, const char *text, size_t size, struct err *err)
{
    return file_write(rows->fd, text, size, rows->path, err);
}

int step_rows_sync(struct step_rows *rows, struct err *err)
{
    return fsync(rows->fd) < 0 ? err_errno(err, errno, "cannot sync %s", rows->path) : 0;
}

void step_rows_close(struct step_rows *rows)
{
    if (rows->fd >= 0)
        close(rows->fd);
    rows->fd = -1;
}

int step_rows_number(char *text, size_t size, const char *before, double number)
{
    return isfinite(number) ? snprintf(text, size, "%s%.9g", before, number)
                            : snprintf(text, size, "%snull", before);
}
