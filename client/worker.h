/* worker.h: traind-worker's plan of a job, made as the caller, without any daemon. */
#ifndef CLIENT_WORKER_H
#define CLIENT_WORKER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/err.h"

/* The worker's program: in a build tree the one built beside this, else the installed one. False if
 * there is none that can be run. */
bool worker_find(char *buf, size_t size);

/* Has `program` plan the document in `text`; `devices` and `cpu_devices` are its options or NULL.
 * *ret_plan is a new reference to what doc/processes.md describes. Relative paths in the document
 * are resolved against the current directory. Errors: what the worker reports, ERR_IO when it
 * cannot be run or dies without a report. */
int worker_plan(const char *program, const char *text, size_t size, const char *devices,
                const char *cpu_devices, json_t **ret_plan, struct err *err);

#endif
