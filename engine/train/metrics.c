/* metrics.c: rows are printed into a buffer on the stack: logging a step allocates nothing. */
#include "engine/train/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/file.h"

enum { ROW_BYTES = 256 + 32 * LIMIT_DEVICES };

/* Takes a row's validation loss, if it has one. What decides is the number as it is written: a
 * resume reads the same. */
static void note_validation(struct metrics *metrics, int64_t step, const char *row)
{
    static const char key[] = "\"validation_loss\": ";
    const char *at = strstr(row, key);
    if (at == NULL)
        return;
    double loss = strtod(at + sizeof key - 1, NULL);
    bool better = loss < metrics->best_loss;
    metrics->validated_step = step;
    metrics->since_best = better ? 0 : metrics->since_best + 1;
    metrics->best_loss = better ? loss : metrics->best_loss;
}

/* Length of the rows that stay. The rows are our own, so their beginning is enough. */
static int scan(struct metrics *metrics, FILE *stream, int64_t step, off_t *ret_bytes,
                struct err *err)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    *ret_bytes = 0;
    while ((n = getline(&line, &size, stream)) > 0 && line[n - 1] == '\n') {
        int64_t row_step;
        if (sscanf(line, "{\"step\": %" SCNd64 ",", &row_step) != 1 || row_step > step)
            break;
        note_validation(metrics, row_step, line);
        *ret_bytes += n;
    }
    int failed = n < 0 && !feof(stream) ? errno : 0;
    free(line);
    return failed == 0 ? 0 : err_errno(err, failed, "cannot read the metrics");
}

static int cut(struct metrics *metrics, int64_t step, struct err *err)
{
    off_t bytes;
    FILE *stream = fopen(metrics->path, "re");
    if (stream == NULL)
        return err_errno(err, errno, "cannot open %s", metrics->path);
    int rc = scan(metrics, stream, step, &bytes, err);
    fclose(stream);
    if (rc == 0 && ftruncate(metrics->fd, bytes) < 0)
        rc = err_errno(err, errno, "cannot cut %s", metrics->path);
    return rc;
}

int metrics_open(const char *output, int64_t step, struct metrics *ret_metrics, struct err *err)
{
    struct metrics metrics = {.best_loss = INFINITY};
    int rc = file_path(metrics.path, err, "%s/metrics.jsonl", output);
    if (rc != 0)
        return rc;
    rc = file_append(metrics.path, &metrics.fd, err);
    if (rc != 0)
        return rc;
    rc = cut(&metrics, step, err);
    if (rc == 0)
        *ret_metrics = metrics;
    else
        metrics_close(&metrics);
    return rc;
}

/* A number, or the null that JSON has for one that is not. */
static int print_number(char *text, size_t size, const char *before, double number)
{
    return isnan(number) ? snprintf(text, size, "%snull", before)
                         : snprintf(text, size, "%s%.9g", before, number);
}

int metrics_write_step(struct metrics *metrics, const struct metrics_step *row, struct err *err)
{
    char text[ROW_BYTES];
    int n = snprintf(text, sizeof text,
                     "{\"step\": %" PRId64 ", \"epoch\": %" PRId64
                     ", \"loss\": %.9g, \"lr\": %.9g, \"samples\": %" PRId64
                     ", \"seconds\": %.9g, \"replica_losses\": [",
                     row->step, row->epoch, row->loss, row->lr, row->samples, row->seconds);
    for (int i = 0; i < row->n_replicas; i++)
        n += print_number(text + n, sizeof text - (size_t)n, i > 0 ? ", " : "",
                          row->replica_losses[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "]}\n");
    return file_write(metrics->fd, text, (size_t)n, metrics->path, err);
}

int metrics_write_validation(struct metrics *metrics, const struct metrics_validation *row,
                             struct err *err)
{
    char text[ROW_BYTES];
    int n = snprintf(text, sizeof text,
                     "{\"step\": %" PRId64 ", \"epoch\": %" PRId64 ", \"validation_loss\": %.9g",
                     row->step, row->epoch, row->loss);
    if (!isnan(row->accuracy))
        n += snprintf(text + n, sizeof text - (size_t)n, ", \"accuracy\": %.9g", row->accuracy);
    n += snprintf(text + n, sizeof text - (size_t)n, "}\n");
    int rc = file_write(metrics->fd, text, (size_t)n, metrics->path, err);
    if (rc == 0)
        note_validation(metrics, row->step, text);
    return rc;
}

int metrics_sync(struct metrics *metrics, struct err *err)
{
    return fsync(metrics->fd) < 0 ? err_errno(err, errno, "cannot sync %s", metrics->path) : 0;
}

void metrics_close(struct metrics *metrics)
{
    if (metrics->fd >= 0)
        close(metrics->fd);
    metrics->fd = -1;
}
