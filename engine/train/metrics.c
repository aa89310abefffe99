/* metrics.c: rows are printed into a buffer on the stack: logging a step allocates nothing. */
#include "engine/train/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void note_kept(void *context, int64_t step, const char *row)
{
    note_validation(context, step, row);
}

int metrics_open(const char *output, int64_t step, struct metrics *ret_metrics, struct err *err)
{
    struct metrics metrics = {.best_loss = INFINITY};
    int rc = step_rows_open(output, "metrics.jsonl", step, note_kept, &metrics, &metrics.rows, err);
    if (rc == 0)
        *ret_metrics = metrics;
    return rc;
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
        n += step_rows_number(text + n, sizeof text - (size_t)n, i > 0 ? ", " : "",
                              row->replica_losses[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "]}\n");
    return step_rows_write(&metrics->rows, text, (size_t)n, err);
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
    int rc = step_rows_write(&metrics->rows, text, (size_t)n, err);
    if (rc == 0)
        note_validation(metrics, row->step, text);
    return rc;
}

int metrics_sync(struct metrics *metrics, struct err *err)
{
    return step_rows_sync(&metrics->rows, err);
}

void metrics_close(struct metrics *metrics)
{
    step_rows_close(&metrics->rows);
}
