/* job_check.h: what a row of job_fields.c cannot say: rules over several keys (internal). */
#ifndef PROTO_JOB_CHECK_H
#define PROTO_JOB_CHECK_H

#include <jansson.h>

#include "proto/err.h"
#include "proto/job.h"

/* Fills in what follows from other values (FIELD_COMPUTED). Errors: ERR_NOMEM; those of job_mark.
 */
int job_complete(const json_t *root, struct job *job, struct err *err);
/* Marks the layers that freeze and fresh name, a part of job_complete. Errors: ERR_JOB_INVALID of a
 * name that no layer has; ERR_NOMEM. */
int job_mark(struct job *job, struct err *err);
/* Writes stages' devices into the list of all, a part of job_complete. Errors: ERR_JOB_INVALID;
 * ERR_NOMEM. */
int job_complete_parallel(const json_t *root, struct job *job, struct err *err);
/* Checks the rules. Errors: ERR_JOB_INVALID with a path; ERR_NOMEM. */
int job_check(const struct job *job, struct err *err);
/* That record names tensors of layers, a part of job_check; which a layer has, the engine knows. */
int job_check_record(const struct job *job, struct err *err);
/* Those about data, a part of job_check. */
int job_check_data(const struct job *job, struct err *err);
/* Those about devices and stages, a part of job_check. */
int job_check_parallel(const struct job *job, struct err *err);
/* Where the document names device `index` of the list of all: a JSON Pointer. */
enum { JOB_DEVICE_PATH = 80 };
void job_device_path(const struct job_parallel *parallel, size_t index,
                     char path[static JOB_DEVICE_PATH]);
/* The layer of that name, else the first whose name begins with it before a dot; n_layers: none. */
size_t job_find_layer(const struct job_model *model, const char *name);
/* ERR_JOB_INVALID at `path`: no layer has the name. */
int job_refuse_layer_name(const struct job_model *model, const char *path, const char *name,
                          struct err *err);
/* The model's input of that name; NULL: there is none. */
const struct job_input *job_find_input(const struct job *job, const char *name);

#endif
