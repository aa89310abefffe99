/* document.h: the job document that a command line names. */
#ifndef ENGINE_WORKER_DOCUMENT_H
#define ENGINE_WORKER_DOCUMENT_H

#include "proto/job.h"

/* Reads and parses `path` ("-": standard input). `devices` ("cpu:0,cpu:1", or NULL) wins over the
 * document's. *ret_job is the caller's. Errors: ERR_IO, ERR_USAGE (a bad list), job_parse's. */
int document_load(const char *path, const char *devices, struct job **ret_job, struct err *err);

#endif
