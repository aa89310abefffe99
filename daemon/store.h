/* store.h: the daemon's SQLite database: one function a statement.
 *
 * A store is used by one thread: by main until store_thread_start, by the store's thread after
 * that. Functions neither begin nor commit: whoever calls them does (store_thread.c, one
 * transaction for many). Errors of all: ERR_IO with SQLite's sentence, ERR_NOMEM.
 */
#ifndef DAEMON_STORE_H
#define DAEMON_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/job.h"
#include "proto/err.h"

struct store;

/* Opens or creates a database with WAL and synchronous=FULL, checks it and migrates it. A damaged
 * or newer database is left as it is. */
int store_open(const char *path, struct store **ret_store, struct err *err);
void store_close(struct store *store);

int store_begin(struct store *store, bool write, struct err *err);
int store_commit(struct store *store, struct err *err);
void store_rollback(struct store *store);
/* A savepoint, so that one request's failure leaves the others of its transaction alone. */
int store_savepoint(struct store *store, struct err *err);
int store_release(struct store *store, bool keep, struct err *err);

/* Inserts a new job and its document; record->id is set. */
int store_insert_job(struct store *store, struct job_record *record, const char *key,
                     struct err *err);
int store_insert_document(struct store *store, int64_t id, const char *text, size_t size,
                          struct err *err);
/* Writes what may change in a record. */
int store_update_job(struct store *store, const struct job_record *record, struct err *err);
/* Inserts a row of history; transition->seq is set. */
int store_insert_transition(struct store *store, struct job_transition *transition,
                            struct err *err);

/* The job that `uid` submitted with this key; *ret_id is 0 if there is none. */
int store_find_key(struct store *store, uid_t uid, const char *key, int64_t *ret_id,
                   struct err *err);
/* ERR_NOT_FOUND if there is no such job. The record is the caller's. */
int store_get_job(struct store *store, int64_t id, struct job_record **ret_record, struct err *err);
/* The same of its few small columns; ret_brief->exit is a new reference. */
int store_get_brief(struct store *store, int64_t id, struct job_brief *ret_brief, struct err *err);
/* The text is the caller's, to be freed with free(). */
int store_get_document(struct store *store, int64_t id, char **ret_text, size_t *ret_size,
                       struct err *err);

/* Rows go to a function, in order; a nonzero return ends the walk and becomes its result. A record
 * or transition given to it is the function's. */
typedef int store_job_fn(void *arg, struct job_record *record, struct err *err);
typedef int store_transition_fn(void *arg, struct job_transition *transition, struct err *err);

/* Jobs with id > after, oldest first, at most `limit`. `states`: bits 1 << state, 0 is all; `uid`
 * negative: of everybody. */
struct store_filter {
    int64_t after, limit;
    unsigned states;
    int64_t uid;
};
int store_each_job(struct store *store, const struct store_filter *filter, store_job_fn *fn,
                   void *arg, struct err *err);
int store_each_unfinished(struct store *store, store_job_fn *fn, void *arg, struct err *err);
/* A job's history, oldest first. */
int store_each_transition_of(struct store *store, int64_t id, store_transition_fn *fn, void *arg,
                             struct err *err);
/* Everybody's history with seq > since, at most `limit` rows. */
int store_each_transition_since(struct store *store, int64_t since, int64_t limit,
                                store_transition_fn *fn, void *arg, struct err *err);
/* Devices that were held, by jobs that ended after `since_ns`, in the order of their ends. */
struct store_use {
    uid_t uid;
    size_t devices;
    int64_t started_ns, ended_ns;
};
typedef int store_use_fn(void *arg, const struct store_use *use, struct err *err);
int store_each_use(struct store *store, int64_t since_ns, store_use_fn *fn, void *arg,
                   struct err *err);
/* Devices that are drained, by name. */
int store_put_drain(struct store *store, const char *device, uid_t uid, const char *reason,
                    struct err *err);
int store_delete_drain(struct store *store, const char *device, struct err *err);
typedef int store_drain_fn(void *arg, const char *device, uid_t uid, const char *reason,
                           struct err *err);
int store_each_drain(struct store *store, store_drain_fn *fn, void *arg, struct err *err);
/* The newest seq, 0 in an empty history. */
int store_last_seq(struct store *store, int64_t *ret_seq, struct err *err);
int store_count_states(struct store *store, int64_t ret_count[STATE_COUNT], struct err *err);

#endif
