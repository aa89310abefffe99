/* store_thread.h: SQLite's own thread, so that the loop never waits for a disk.
 *
 * Requests are run in the order of their submission. All that wait at one moment share one
 * transaction and so one fsync (group commit); their answers come on the loop, in the same order,
 * after the commit. A request's failure rolls back that request alone.
 *
 * When the disk fails or is full, reads and ordinary writes fail; a STORE_MUST write (a job's move:
 * it has happened, whether we can write it or not) stays in the queue, in its order, and is tried
 * again every second.
 */
#ifndef DAEMON_STORE_THREAD_H
#define DAEMON_STORE_THREAD_H

#include "daemon/store.h"

struct uv_loop_s;
struct store_thread;

enum store_kind { STORE_READ, STORE_WRITE, STORE_MUST };

/* Embed it first in a struct of one's own. */
struct store_request {
    enum store_kind kind;
    /* On the store's thread. May be run more than once: a rollback undoes the one before. */
    int (*run)(struct store_request *self, struct store *store, struct err *err);
    /* On the loop; the request is the callee's again. err->code 0: committed. */
    void (*done)(struct store_request *self, const struct err *err);
    struct err err;
    struct store_request *next;
};

/* Starts the thread; the store becomes the thread's, and is closed by its end. Errors: ERR_NOMEM,
 * ERR_IO; the store stays the caller's then. */
int store_thread_start(struct uv_loop_s *loop, struct store *store,
                       struct store_thread **ret_thread, struct err *err);
/* Queues a request. The loop's thread. */
void store_thread_submit(struct store_thread *thread, struct store_request *request);
/* Commits what is queued, ends the thread, gives the last answers, closes; then `closed`. */
void store_thread_stop(struct store_thread *thread, void (*closed)(void *arg), void *arg);

#endif
