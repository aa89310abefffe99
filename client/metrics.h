/* metrics.h: the metrics.jsonl of a job, read back as curves over its steps. */
#ifndef CLIENT_METRICS_H
#define CLIENT_METRICS_H

#include <jansson.h>
#include <stddef.h>

#include "client/render/chart.h"
#include "proto/err.h"

enum metrics_curve {
    METRICS_LOSS,
    METRICS_VALIDATION_LOSS,
    METRICS_ACCURACY,
    METRICS_LR,
    METRICS_THROUGHPUT, /* samples a second */
    METRICS_COUNT
};

struct metrics {
    struct {
        struct chart_point *points; /* x: the step */
        size_t n, size;
    } curves[METRICS_COUNT];
};

/* Reads the file at `path`, or metrics.jsonl in the directory there. A last line that is not whole,
 * of a job that runs, is left out. Errors: ERR_IO; ERR_PARSE naming the line; ERR_NOMEM. */
int metrics_read(const char *path, struct metrics *ret_metrics, struct err *err);
void metrics_done(struct metrics *metrics);

#endif
