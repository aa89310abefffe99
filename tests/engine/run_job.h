/* run_job.h: small jobs, run by the real trainer on the real backend, for the checks of train.
 *
 * Documents are written with ' for ", and merged over one base job (null takes a key away): an MLP
 * with BatchNorm and Dropout, two epochs of three steps, a validation set, a checkpoint every two
 * steps.
 */
#ifndef TESTS_ENGINE_RUN_JOB_H
#define TESTS_ENGINE_RUN_JOB_H

#include <stdbool.h>

#include "engine/train/trainer.h"

struct run_job {
    int rc;
    struct err err;
    char said[1 << 16];                          /* the lines of the log, each with '\n' */
    int reports[REPORT_TYPE_COUNT];              /* how many of each */
    struct report started, progress, done, last; /* `confusion` is not kept */
    bool confusion;                              /* `done` had one */
};

/* The base job with `patch` ("{}": none) merged in. Aborts the test where it does not parse. */
struct job *run_job_parse(const char *patch);

/* Runs the job on n CPU devices of one thread each. `stop_after`: raises the stop flag at the
 * report of that step; 0: never. */
void run_job(const char *patch, const char *output, int n_devices, int64_t stop_after,
             struct run_job *ret_run);
void run_job_parsed(const struct job *job, const char *output, int n_devices, int64_t stop_after,
                    struct run_job *ret_run);
/* The same with this config, but for its stop and sink. */
void run_job_with(const struct trainer_config *config, int64_t stop_after, struct run_job *ret_run);
/* The same; aborts the test unless the job ends well. */
void run_job_well(const char *patch, const char *output, int n_devices, struct run_job *ret_run);

/* A file of an output directory, with a NUL behind it, to be freed; ret_size NULL: not asked for. A
 * file that is not there is empty. */
char *run_job_contents(const char *dir, const char *name, size_t *ret_size);
/* Aborts the test unless both directories have this file, not empty, with the same bytes. */
void run_job_same_file(const char *a, const char *b, const char *name);

/* The trainer's config alone, for trainer_plan. */
struct trainer_config run_job_config(const struct job *job, int n_devices, const char *output);

#endif
