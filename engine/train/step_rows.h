/* step_rows.h: a file of JSON objects, one a line, each of which begins with {"step": N, and cut
 * back to where a resume begins. */
#ifndef ENGINE_TRAIN_STEP_ROWS_H
#define ENGINE_TRAIN_STEP_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"
#include "proto/limits.h"

struct step_rows {
    int fd; /* -1: not open */
    char path[LIMIT_PATH_BYTES];
};

/* Called with each row that stays, a string without its newline's successor. */
typedef void step_rows_fn(void *context, int64_t step, const char *row);

/* Opens `output`/`name` and drops every row after `step`, and a torn last one. `kept` may be NULL.
 * Errors: ERR_IO. */
int step_rows_open(const char *output, const char *name, int64_t step, step_rows_fn *kept,
                   void *context, struct step_rows *ret_rows, struct err *err);
/* One write: a kill cannot interleave rows or lose those before it. */
int step_rows_write(struct step_rows *rows, const char *text, size_t size, struct err *err);
/* Before a checkpoint: the rows up to its step are then on the disk. */
int step_rows_sync(struct step_rows *rows, struct err *err);
void step_rows_close(struct step_rows *rows);

/* "BEFORE3.25", or null for what JSON has no number for; as snprintf. */
int step_rows_number(char *text, size_t size, const char *before, double number);

#endif
