/* record.h: the daemon's results as JSON (doc/processes.md). Pure; the loop's thread. */
#ifndef DAEMON_RECORD_H
#define DAEMON_RECORD_H

#include "daemon/job.h"

/* All return new references, NULL without memory. */

/* A job record. `why` is the computed reason of a queued job, or NULL. `full`: for the owner and
 * administrators; others see id, user, state, devices and times, and why a job is queued. */
json_t *record_json(const struct job_record *record, const char *why, bool full);

/* What a state event says has changed, of a record that is in this state. */
json_t *record_changed(const struct job_record *record, const char *why, bool full);

/* One row of "history". */
json_t *record_transition(const struct job_transition *transition);

/* Seconds since 1970; null for 0. */
json_t *record_time(int64_t ns);
/* A string, or null for NULL. */
json_t *record_text(const char *text);
/* ["cpu:0", …] */
json_t *record_devices(const struct devlist *devices);

#endif
