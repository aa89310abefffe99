/* query.h: records from the database, as this caller may see them. */
#ifndef DAEMON_QUERY_H
#define DAEMON_QUERY_H

#include <jansson.h>

#include "daemon/job.h"
#include "daemon/session.h"

struct daemon;
struct store;

/* A growing list of records. Zero-initialise. */
struct query_records {
    struct job_record **record;
    size_t n, room;
};
/* A store_job_fn; `arg` is a struct query_records. Any thread. */
int query_records_add(void *arg, struct job_record *record, struct err *err);
void query_records_clear(struct query_records *records);

/* A brief for each of a call's `ids`, in their order. Zero-initialise. */
struct query_briefs {
    struct job_brief *brief;
    size_t n;
};
/* Reads them anew; STATE_COUNT marks a job that does not exist. The store's thread. */
int query_briefs_read(struct query_briefs *briefs, struct store *store, const struct call *call,
                      struct err *err);
void query_briefs_clear(struct query_briefs *briefs);

/* The loop's thread; new references, NULL without memory. Newer progress is taken from memory. */
json_t *query_record(struct daemon *daemon, struct job_record *record, const struct peer *peer);
json_t *query_records_json(struct daemon *daemon, const struct query_records *records,
                           const struct peer *peer);

#endif
