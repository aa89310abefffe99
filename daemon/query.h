/* query.h: records from the database, as this caller may see them. */
#ifndef DAEMON_QUERY_H
#define DAEMON_QUERY_H

#include <jansson.h>

#include "daemon/job.h"
#include "daemon/session.h"

struct daemon;

/* A growing list of records. Zero-initialise. */
struct query_records {
    struct job_record **record;
    size_t n, room;
};
/* A store_job_fn; `arg` is a struct query_records. Any thread. */
int query_records_add(void *arg, struct job_record *record, struct err *err);
void query_records_clear(struct query_records *records);

/* The loop's thread; new references, NULL without memory. Newer progress is taken from memory. */
json_t *query_record(struct daemon *daemon, struct job_record *record, const struct peer *peer);
json_t *query_records_json(struct daemon *daemon, const struct query_records *records,
                           const struct peer *peer);

#endif
