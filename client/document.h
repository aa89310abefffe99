/* document.h: a job document as the user gave it: read from a file or standard input, checked with
 * the daemon's own parser, and kept so that an error can say its line and column. */
#ifndef CLIENT_DOCUMENT_H
#define CLIENT_DOCUMENT_H

#include <jansson.h>

#include "proto/err.h"
#include "proto/job.h"

struct document {
    const char *name; /* as errors call it: the file's name or "<stdin>"; not owned */
    char *text;       /* NULL: nothing was read */
    size_t size;
    json_t *root;
    struct job *job;
};

/* Reads and checks `file` ("-": standard input). On failure `ret` holds what was read all the same,
 * for document_where; document_done frees it either way. Errors: ERR_IO, ERR_JOB_INVALID,
 * ERR_JOB_UNSUPPORTED, ERR_NOMEM. */
int document_read(const char *file, struct document *ret, struct err *err);
void document_done(struct document *document);

/* Where an error is: writes "job.json:14:7: " in front of its path or message, "job.json: " where
 * no line is known, or "" for an error that is not about the document. Returns the error's message
 * without a position that it carries itself. */
const char *document_where(const struct document *document, const struct err *err, char *buf,
                           size_t size);

#endif
