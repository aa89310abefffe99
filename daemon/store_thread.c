/* store_thread.c: see store_thread.h. */
#include "daemon/store_thread.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "daemon/log.h"

#define RETRY_NS (1000ULL * 1000 * 1000)

struct queue {
    struct store_request *first, **last;
};

struct store_thread {
    struct store *store; /* the thread's */
    uv_thread_t thread;
    uv_mutex_t mutex;
    uv_cond_t wake;
    struct queue waiting;  /* under mutex */
    struct queue finished; /* under mutex */
    bool stopping;         /* under mutex */
    uv_async_t async;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
}

static void queue_push(struct queue *queue, struct store_request *request)
{
    request->next = NULL;
    *queue->last = request;
    queue->last = &request->next;
}

static struct store_request *queue_pop(struct queue *queue)
{
    struct store_request *request = queue->first;
    if (request == NULL)
        return NULL;
    queue->first = request->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    return request;
}

/* Moves all of `from` behind what is in `to`. */
static void queue_append(struct queue *to, struct queue *from)
{
    if (from->first == NULL)
        return;
    *to->last = from->first;
    to->last = from->last;
    queue_init(from);
}

/* One request inside the transaction. Returns an error only if the whole transaction is lost. */
static int run_one(struct store *store, struct store_request *request, struct err *err)
{
    request->err = (struct err)ERR_INIT;
    int rc = store_savepoint(store, err);
    if (rc != 0)
        return rc;
    int result = request->run(request, store, &request->err);
    if (result != 0 && request->kind == STORE_MUST) {
        *err = request->err;
        return result;
    }
    return store_release(store, result == 0, err);
}

static bool is_writing(const struct queue *batch)
{
    bool write = false;
    for (const struct store_request *r = batch->first; r != NULL; r = r->next)
        write |= r->kind != STORE_READ;
    return write;
}

/* Runs all of `batch` in one transaction. */
static int run_batch(struct store *store, struct queue *batch, struct err *err)
{
    int rc = store_begin(store, is_writing(batch), err);
    if (rc != 0)
        return rc;
    for (struct store_request *r = batch->first; rc == 0 && r != NULL; r = r->next)
        rc = run_one(store, r, err);
    if (rc == 0)
        rc = store_commit(store, err);
    if (rc != 0)
        store_rollback(store);
    return rc;
}

/* After a lost transaction: ordinary writes have failed, moves stay in `batch` for the next try,
 * and reads see what is committed. */
static void sort_out(struct store *store, struct queue *batch, const struct err *err,
                     struct queue *finished)
{
    struct queue kept, reads;
    struct store_request *request;
    struct err ignored = ERR_INIT;
    queue_init(&kept);
    queue_init(&reads);
    while ((request = queue_pop(batch)) != NULL) {
        struct queue *const to[] = {
            [STORE_READ] = &reads, [STORE_WRITE] = finished, [STORE_MUST] = &kept};
        request->err = *err;
        queue_push(to[request->kind], request);
    }
    if (reads.first != NULL)
        run_batch(store, &reads, &ignored);
    queue_append(finished, &reads);
    queue_append(batch, &kept);
}

/* Waits for work. False: nothing is left to do and the thread is to end. */
static bool next_batch(struct store_thread *t, struct queue *batch)
{
    uv_mutex_lock(&t->mutex);
    if (batch->first != NULL && !t->stopping)
        uv_cond_timedwait(&t->wake, &t->mutex, RETRY_NS);
    while (batch->first == NULL && t->waiting.first == NULL && !t->stopping)
        uv_cond_wait(&t->wake, &t->mutex);
    queue_append(batch, &t->waiting);
    bool more = batch->first != NULL;
    uv_mutex_unlock(&t->mutex);
    return more;
}

static void hand_over(struct store_thread *t, struct queue *finished)
{
    uv_mutex_lock(&t->mutex);
    queue_append(&t->finished, finished);
    uv_mutex_unlock(&t->mutex);
    uv_async_send(&t->async);
}

static bool is_stopping(struct store_thread *t)
{
    uv_mutex_lock(&t->mutex);
    bool stopping = t->stopping;
    uv_mutex_unlock(&t->mutex);
    return stopping;
}

/* A full disk stays full for hours, and a move is tried every second: one line when it begins
 * (or the reason changes), one when it is over. */
static void log_health(struct err *last, const struct err *now)
{
    if (now->code != 0 && strcmp(last->message, now->message) != 0)
        log_error("the database cannot be written, and is tried again until it can: %s",
                  now->message);
    else if (now->code == 0 && last->code != 0)
        log_info("the database can be written again");
    *last = *now;
}

static void thread_main(void *arg)
{
    struct store_thread *t = arg;
    struct err health = ERR_INIT; /* of the last transaction that wrote */
    struct queue batch, finished;
    queue_init(&batch);
    queue_init(&finished);
    while (next_batch(t, &batch)) {
        struct err err = ERR_INIT;
        bool writes = is_writing(&batch);
        run_batch(t->store, &batch, &err);
        if (writes)
            log_health(&health, &err);
        if (err.code == 0) {
            queue_append(&finished, &batch);
        } else {
            sort_out(t->store, &batch, &err, &finished);
            if (is_stopping(t))
                queue_append(&finished, &batch); /* recovery finds out at the next start */
        }
        hand_over(t, &finished);
    }
    store_close(t->store);
}

static void deliver(struct store_thread *t)
{
    struct queue finished;
    struct store_request *request;
    queue_init(&finished);
    uv_mutex_lock(&t->mutex);
    queue_append(&finished, &t->finished);
    uv_mutex_unlock(&t->mutex);
    while ((request = queue_pop(&finished)) != NULL)
        request->done(request, &request->err);
}

static void on_async(uv_async_t *async)
{
    deliver(async->data);
}

int store_thread_start(uv_loop_t *loop, struct store *store, struct store_thread **ret_thread,
                       struct err *err)
{
    struct store_thread *t = calloc(1, sizeof *t);
    if (t == NULL || uv_mutex_init(&t->mutex) != 0)
        goto no_mutex;
    queue_init(&t->waiting);
    queue_init(&t->finished);
    t->store = store;
    t->async.data = t;
    if (uv_cond_init(&t->wake) != 0)
        goto no_cond;
    if (uv_async_init(loop, &t->async, on_async) != 0)
        goto no_async;
    if (uv_thread_create(&t->thread, thread_main, t) != 0)
        goto no_thread;
    *ret_thread = t;
    return 0;
no_thread:
    /* The handle is the loop's until it is closed; the process is about to end, so it stays. */
    uv_unref((uv_handle_t *)&t->async);
    return err_set(err, ERR_IO, "the database's thread cannot be started");
no_async:
    uv_cond_destroy(&t->wake);
no_cond:
    uv_mutex_destroy(&t->mutex);
no_mutex:
    free(t);
    return err_set(err, ERR_NOMEM, "out of memory");
}

void store_thread_submit(struct store_thread *t, struct store_request *request)
{
    uv_mutex_lock(&t->mutex);
    bool idle = t->waiting.first == NULL;
    queue_push(&t->waiting, request);
    if (idle)
        uv_cond_signal(&t->wake);
    uv_mutex_unlock(&t->mutex);
}

static void on_closed(uv_handle_t *handle)
{
    struct store_thread *t = handle->data;
    void (*closed)(void *) = t->closed;
    void *arg = t->closed_arg;
    uv_cond_destroy(&t->wake);
    uv_mutex_destroy(&t->mutex);
    free(t);
    closed(arg);
}

void store_thread_stop(struct store_thread *t, void (*closed)(void *arg), void *arg)
{
    t->closed = closed;
    t->closed_arg = arg;
    uv_mutex_lock(&t->mutex);
    t->stopping = true;
    uv_cond_signal(&t->wake);
    uv_mutex_unlock(&t->mutex);
    uv_thread_join(&t->thread);
    deliver(t);
    uv_close((uv_handle_t *)&t->async, on_closed);
}
