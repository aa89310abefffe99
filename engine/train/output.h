/* output.h: a job's output directory: made with the user's own rights, locked while the job runs.
 *
 * Errors are ERR_OUTPUT where the directory cannot be used.
 */
#ifndef ENGINE_TRAIN_OUTPUT_H
#define ENGINE_TRAIN_OUTPUT_H

#include <stddef.h>

#include "proto/err.h"
#include "proto/job.h"
#include "proto/limits.h"

struct output {
    char path[LIMIT_PATH_BYTES]; /* absolute */
    int lock;                    /* descriptor of PATH/lock; -1: not open */
    size_t made;                 /* directories that output_open made, counted from the deepest */
};

/* Makes the directory and those above it where they are missing, and takes its lock. A live job's
 * lock is an error that names the job. */
int output_open(const char *path, const char *job_name, struct output *ret_output, struct err *err);
/* Releases the lock. */
void output_close(struct output *output);
/* The same for a job that never began: what output_open made goes away again, unless
 * something was written into it. */
void output_abandon(struct output *output);

/* Refuses an input of the job (its initial weights) that the job would overwrite. */
int output_keep(const struct output *output, const char *input, struct err *err);
/* Removes what an earlier run left: checkpoints, weights. */
int output_clear(const struct output *output, struct err *err);
/* Writes job.json, the document as run. */
int output_write_job(const struct output *output, const struct job *job, struct err *err);

#endif
