/* verdict.h: how a job ended, from its exit record and its own last words. PURE. */
#ifndef DAEMON_VERDICT_H
#define DAEMON_VERDICT_H

#include "daemon/job.h"

struct verdict {
    enum job_state state; /* completed, failed or cancelled */
    struct err why;       /* code 0 for completed */
};

/* `record` is in starting, running or stopping. A job is completed if it said that it was done and
 * then exited with status 0; its own `failed` report is more telling than how it ended. */
void verdict_reach(const struct job_record *record, const struct runner_exit *ended, int grace_s,
                   struct verdict *ret_verdict);

/* The record's `exit` object for a verdict; `ended` NULL: there is no exit record. New reference,
 * NULL without memory. */
json_t *verdict_json(const struct verdict *verdict, const struct runner_exit *ended);

#endif
