/* metrics.c: see metrics.h. */
#include "client/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/limits.h"

/* Where a curve's value stands in a row: at a key, divided by that at another. */
static const struct {
    const char *key, *by;
} places[METRICS_COUNT] = {
    [METRICS_LOSS] = {"loss", NULL},
    [METRICS_VALIDATION_LOSS] = {"validation_loss", NULL},
    [METRICS_ACCURACY] = {"accuracy", NULL},
    [METRICS_LR] = {"lr", NULL},
    [METRICS_THROUGHPUT] = {"samples", "seconds"},
};

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "out of memory for the metrics");
}

static int add_point(struct metrics *metrics, enum metrics_curve curve, double x, double y,
                     struct err *err)
{
    size_t n = metrics->curves[curve].n, size = metrics->curves[curve].size;
    if (n == size) {
        size = size * 2 + 64;
        struct chart_point *grown = realloc(metrics->curves[curve].points, size * sizeof *grown);
        if (grown == NULL)
            return nomem(err);
        metrics->curves[curve].points = grown;
        metrics->curves[curve].size = size;
    }
    metrics->curves[curve].points[n] = (struct chart_point){x, y, 0};
    metrics->curves[curve].n++;
    return 0;
}

static int take_row(struct metrics *metrics, const json_t *row, struct err *err)
{
    double step = json_number_value(json_object_get(row, "step"));
    int rc = 0;
    for (int i = 0; rc == 0 && i < METRICS_COUNT; i++) {
        const json_t *value = json_object_get(row, places[i].key);
        const json_t *by = places[i].by != NULL ? json_object_get(row, places[i].by) : NULL;
        if (!json_is_number(value) || (places[i].by != NULL && !(json_number_value(by) > 0)))
            continue;
        double y = json_number_value(value) / (by != NULL ? json_number_value(by) : 1);
        rc = add_point(metrics, (enum metrics_curve)i, step, y, err);
    }
    return rc;
}

static int read_rows(FILE *in, const char *path, struct metrics *metrics, struct err *err)
{
    char *line = NULL;
    size_t room = 0, number = 1;
    int rc = 0;
    for (ssize_t n; rc == 0 && (n = getline(&line, &room, in)) > 0; number++) {
        json_error_t at;
        if (line[n - 1] != '\n')
            break;
        json_t *row = json_loadb(line, (size_t)n, 0, &at);
        if (row == NULL)
            rc = err_set(err, ERR_PARSE, "%s: line %zu: %s", path, number, at.text);
        else
            rc = take_row(metrics, row, err);
        json_decref(row);
    }
    if (rc == 0 && ferror(in))
        rc = err_errno(err, errno, "cannot read %s", path);
    free(line);
    return rc;
}

/* The job's user may have put anything there: a pipe is not waited for. */
static int open_rows(const char *path, FILE **ret_in, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat stat;
    if (fd < 0 || fstat(fd, &stat) < 0) {
        int failed = errno;
        if (fd >= 0)
            close(fd);
        return err_errno(err, failed, "cannot open %s", path);
    }
    *ret_in = S_ISREG(stat.st_mode) ? fdopen(fd, "r") : NULL;
    if (*ret_in != NULL)
        return 0;
    close(fd);
    return S_ISREG(stat.st_mode) ? nomem(err) : err_set(err, ERR_IO, "%s is no file", path);
}

static bool is_directory(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

int metrics_read(const char *path, struct metrics *ret_metrics, struct err *err)
{
    struct metrics metrics = {0};
    char file[LIMIT_PATH_BYTES + 32];
    FILE *in;
    snprintf(file, sizeof file, "%s%s", path, is_directory(path) ? "/metrics.jsonl" : "");
    int rc = open_rows(file, &in, err);
    if (rc != 0)
        return rc;
    rc = read_rows(in, file, &metrics, err);
    fclose(in);
    if (rc == 0)
        *ret_metrics = metrics;
    else
        metrics_done(&metrics);
    return rc;
}

void metrics_done(struct metrics *metrics)
{
    for (int i = 0; i < METRICS_COUNT; i++)
        free(metrics->curves[i].points);
    *metrics = (struct metrics){0};
}
