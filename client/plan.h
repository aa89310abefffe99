/* plan.h: a job's plan, which traind-worker makes as the caller (doc/processes.md). */
#ifndef CLIENT_PLAN_H
#define CLIENT_PLAN_H

#include "client/ctl.h"

/* Reads the job in `file` into ctl->document and has it planned for --devices and --cpu-devices.
 * Errors: document_read's, worker_call's. */
int plan_make(struct ctl *ctl, const char *file, json_t **ret_plan, struct err *err);

/* "[32, 8, 8]" */
void plan_add_shape(struct text *text, const json_t *shape);

#endif
