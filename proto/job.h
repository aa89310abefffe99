/* job.h: the job document, parsed.
 *
 * job_parse turns JSON text into `struct job`: every rule that needs no file and no device is
 * checked here, every default is filled in. What job.md describes but this version does not run is
 * refused by name (ERR_JOB_UNSUPPORTED); an unknown key is ERR_JOB_INVALID with the nearest known
 * key. job_dump writes the document back with every default written out. Parser, dump and
 * job.schema.json are driven by the one set of field tables in job_fields.c.
 *
 * No I/O; any thread; a job belongs to who called job_parse and is freed with job_free. Strings are
 * never NULL unless said so. Fields are PyTorch's.
 */
#ifndef PROTO_JOB_H
#define PROTO_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"
#include "proto/job_data.h"
#include "proto/job_model.h"
#include "proto/job_parallel.h"
#include "proto/job_queue.h"
#include "proto/job_train.h"

struct job_checkpoint {
    struct job_every every; /* default 1 epoch */
    int64_t keep;           /* newest checkpoints kept; default 2 */
    bool resume;            /* "auto" (default) or "never" */
};

struct job {
    char *name; /* default: "job" */
    struct job_model model;
    struct job_data data;
    struct job_loss loss;
    struct job_optimizer optimizer; /* of mode "train" */
    bool has_optimizer;
    struct job_schedule schedule;
    struct job_train train;
    struct job_parallel parallel;
    struct job_checkpoint checkpoint;
    char *output; /* NULL: runs/ID */
    struct job_queue queue;
};

/* Parses a document of `size` bytes. On success *ret_job is the caller's. Errors: ERR_JOB_INVALID
 * and ERR_JOB_UNSUPPORTED with a path, ERR_NOMEM. Broken JSON is ERR_JOB_INVALID with "line L,
 * column C" in the message. */
int job_parse(const char *text, size_t size, struct job **ret_job, struct err *err);
/* The same for a value that is parsed already (strictly, see json_load). `root` stays the caller's.
 */
int job_from_json(const json_t *root, struct job **ret_job, struct err *err);
void job_free(struct job *job);

/* The document with every default written out; a new reference, NULL without memory. Parsing it
 * again gives an equal job. */
json_t *job_dump(const struct job *job);

/* Whether it makes steps of training: to learn, or to see how long they take. */
bool job_trains(const struct job *job);
/* Whether a job of mode "stages" can run on `n` devices; any other can. Errors: ERR_JOB_INVALID. */
int job_check_devices(const struct job *job, size_t n, struct err *err);
/* Puts `n` named devices in place of the document's, in the order of its stages where these name
 * theirs; several devices of a single-device job replicate it. Takes the list and its strings on
 * success. Errors: those of job_check_devices; ERR_NOMEM. */
int job_set_devices(struct job *job, char **devices, size_t n, struct err *err);
/* The first layer of each stage, in order: ret_first has room for LIMIT_DEVICES. Returns how many
 * there are; 0: the document leaves the split to balance. */
size_t job_stage_begins(const struct job *job, size_t *ret_first);

/* "L1Loss" for LOSS_L1, and so on. */
const char *loss_type_name(enum loss_type type);

/* The "input" and "layers" that {"preset": name, "args": args} stands for, `args` NULL for none. A
 * new reference. Errors: ERR_JOB_INVALID with a path ("/preset", "/args/width"), ERR_NOMEM. */
int job_preset(const char *name, json_t *args, json_t **ret_model, struct err *err);

#endif
