/* report.h: what a worker says about its job, one JSON object a line.
 *
 * traind-worker writes reports to the descriptor named by TRAIND_REPORT_FD (set by the shim), or to
 * standard output under --json. Whoever reads them must treat them as a user's words: report_parse
 * bounds and validates. Unknown fields are dropped, unknown types refused.
 */
#ifndef PROTO_REPORT_H
#define PROTO_REPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"
#include "proto/limits.h"

enum report_type {
    /* steps (total), epochs, resumed_step (0: from the beginning), output */
    REPORT_STARTED,
    REPORT_PROGRESS,   /* step, epoch, loss, samples_per_second, seconds_left */
    REPORT_VALIDATION, /* step, epoch, validation_loss, accuracy (absent: not a classifier) */
    REPORT_CHECKPOINT, /* step, path */
    REPORT_DONE,       /* step, weights (path), accuracy?, validation_loss?, confusion? */
    REPORT_FAILED,     /* code (stable name), message, path */
    REPORT_TYPE_COUNT
};

struct report {
    enum report_type type;
    int64_t step, steps, epoch, epochs, resumed_step;
    double loss, validation_loss, accuracy; /* NAN: not given */
    double samples_per_second, seconds_left;
    struct err err;              /* REPORT_FAILED */
    char path[LIMIT_PATH_BYTES]; /* output, checkpoint or weights */
    json_t *confusion; /* REPORT_DONE: rows of target, columns of prediction; NULL unless 2..16
                          classes */
};

/* Of this type, with nothing given. */
struct report report_blank(enum report_type type);
/* One line without '\n', to be freed with free(); NULL without memory. */
char *report_format(const struct report *report);
/* Absent numbers are NAN, absent counts 0. Errors: ERR_PARSE,
 * ERR_NOMEM; ret_report is then untouched. On success the caller frees with report_done. */
int report_parse(const char *line, size_t size, struct report *ret_report, struct err *err);
void report_done(struct report *report);

#endif
