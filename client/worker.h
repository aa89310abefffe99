/* worker.h: what traind-worker says of a job or of files, run as the caller, without any daemon. */
#ifndef CLIENT_WORKER_H
#define CLIENT_WORKER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/err.h"

/* Whether there is one that can be run: in a build tree the one built beside this, else the
 * installed one. */
bool worker_exists(void);

/* Runs `traind-worker WORD --json WORD…` with `size` bytes of `input` on its standard input.
 * *ret_result is a new reference to what doc/processes.md describes. Relative paths, in a document
 * too, are resolved against the current directory. Errors: what the worker reports, ERR_IO when it
 * cannot be run or dies without a report, or when there is none. */
int worker_call(const char *const *words, size_t n_words, const char *input, size_t size,
                json_t **ret_result, struct err *err);

#endif
