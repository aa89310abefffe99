/* reporter.h: where the worker speaks: reports as JSON lines for a program, lines of text for a
 * person. One thread. */
#ifndef ENGINE_WORKER_REPORTER_H
#define ENGINE_WORKER_REPORTER_H

#include <stdbool.h>
#include <stdio.h>

#include "proto/report.h"

struct reporter {
    int fd;               /* of reports; -1: nobody wants them */
    bool owned;           /* fd is not standard output */
    FILE *text;           /* for a person; standard error where the reports take standard output */
    const char *document; /* that it is all about, by its name; NULL: about none */
    int64_t steps, epochs;
    int64_t next_ns; /* progress before that is held back */
    bool held;
    struct report latest; /* the progress held back */
};

/* Reports go to TRAIND_REPORT_FD where it is set, else to standard output if `json`. Errors:
 * ERR_USAGE where the variable names no open descriptor. `document` is borrowed. */
int reporter_open(struct reporter *reporter, const char *document, bool json, struct err *err);
/* Passes on what was held back, and closes the descriptor: who reads it knows that we end. */
void reporter_close(struct reporter *reporter);

/* Progress comes at most ten times a second; the last one before any other report always comes. */
void reporter_report(struct reporter *reporter, const struct report *report);
void reporter_say(struct reporter *reporter, const char *line);
/* The error on standard error ("traind-worker: DOCUMENT: PATH: MESSAGE") and as a `failed` report.
 */
void reporter_fail(struct reporter *reporter, const struct err *failure);

#endif
