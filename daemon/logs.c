/* logs.c: see logs.h.
 *
 * A follow: idle ─(grew, ended, drained)─► reading ─► sent ─┬─(more, not behind)─► reading
 *                                                           ├─► idle
 *                                                           └─(eof)─► over
 */
#include "daemon/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/base64.h"
#include "daemon/daemon.h"
#include "daemon/statedir.h"
#include "daemon/store_thread.h"
#include "proto/methods.h"

/* One chunk, read by a thread of libuv's pool. */
struct chunk {
    char path[PATH_MAX];
    int64_t offset;
    bool was_over; /* the job had ended before this read began: what it sees is all */
    char *data;
    size_t n;
    int64_t size; /* of the whole file */
    struct err err;
};

struct follow {
    uv_work_t work;
    struct session *session; /* NULL: gone while reading */
    struct daemon *daemon;
    int64_t id;
    struct chunk chunk;
    bool reading, again;
    struct follow *next;
};

struct logs_request {
    struct store_request base;
    uv_work_t work;
    struct daemon *daemon;
    struct call *call;
    int64_t id;
    struct job_brief job;
    bool follow;
    struct chunk chunk;
};

/* ── A chunk ── */

static void chunk_drop(struct chunk *chunk)
{
    free(chunk->data);
    chunk->data = NULL;
    chunk->n = 0;
}

/* Has memory from here to chunk_drop, so that a follow that waits holds none. A log that is not
 * there yet is empty. */
static void chunk_read(struct chunk *chunk)
{
    struct stat st;
    chunk->err.code = 0;
    chunk->n = 0;
    chunk->size = 0;
    chunk->data = malloc(LOGS_CHUNK_BYTES);
    if (chunk->data == NULL) {
        err_set(&chunk->err, ERR_NOMEM, "out of memory");
        return;
    }
    int fd = open(chunk->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return;
    if (fd < 0 || fstat(fd, &st) != 0) {
        err_errno(&chunk->err, errno, "the log");
    } else {
        ssize_t n = pread(fd, chunk->data, LOGS_CHUNK_BYTES, chunk->offset);
        chunk->size = st.st_size;
        if (n < 0)
            err_errno(&chunk->err, errno, "the log");
        else
            chunk->n = (size_t)n;
    }
    if (fd >= 0)
        close(fd);
}

/* Bytes of an unfinished UTF-8 sequence at the end, 0 to 3. */
static size_t unfinished(const char *data, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)data[n - back];
        size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        if (c >= 0xc0)
            return want > back ? back : 0;
        if (c < 0x80)
            return 0;
    }
    return 0;
}

/* Text where it is text. NUL is not: many JSON readers refuse it. */
static json_t *data_json(const char *data, size_t n, const char **ret_encoding)
{
    *ret_encoding = "utf-8";
    json_t *text = memchr(data, '\0', n) == NULL ? json_stringn(data, n) : NULL;
    if (text != NULL)
        return text;
    *ret_encoding = "base64";
    char *encoded = base64_encode(data, n);
    text = encoded != NULL ? json_string(encoded) : NULL;
    free(encoded);
    return text;
}

/* The reply's or notification's object; *ret_next and *ret_eof say how it goes on. */
static json_t *chunk_json(const struct chunk *chunk, int64_t *ret_next, bool *ret_eof)
{
    const char *encoding;
    size_t n = chunk->n;
    *ret_eof = chunk->was_over && chunk->offset + (int64_t)n >= chunk->size;
    if (!*ret_eof) /* the rest of a character is still to come */
        n -= unfinished(chunk->data, n);
    *ret_next = chunk->offset + (int64_t)n;
    json_t *data = data_json(chunk->data, n, &encoding);
    return json_pack("{s:I, s:I, s:o, s:s, s:b}", "offset", (json_int_t)chunk->offset, "next",
                     (json_int_t)*ret_next, "data", data, "encoding", encoding, "eof", *ret_eof);
}

static void chunk_init(struct chunk *chunk, struct daemon *daemon, int64_t id, int64_t offset)
{
    statedir_job(daemon->config->state, id, "log", chunk->path, sizeof chunk->path);
    chunk->offset = offset;
}

/* ── Follows ── */

static void follow_free(struct follow *follow)
{
    chunk_drop(&follow->chunk);
    free(follow);
}

static void follow_remove(struct follow *follow)
{
    struct follow **link = session_follow(follow->session);
    while (*link != follow)
        link = &(*link)->next;
    *link = follow->next;
}

static void follow_read(uv_work_t *work)
{
    chunk_read(&((struct follow *)work->data)->chunk);
}

static void follow_go(struct follow *follow);

/* Ends a follow, which may end its session. */
static void follow_over(struct follow *follow)
{
    struct session *session = follow->session;
    follow_remove(follow);
    follow_free(follow);
    session_release(session);
}

static void follow_sent(uv_work_t *work, int status)
{
    struct follow *follow = work->data;
    bool eof = false;
    int64_t next = follow->chunk.offset;
    (void)status;
    follow->reading = false;
    if (follow->session == NULL) {
        follow_free(follow);
        return;
    }
    bool failed = follow->chunk.err.code != 0;
    json_t *params = failed ? NULL : chunk_json(&follow->chunk, &next, &eof);
    if (params != NULL)
        json_object_set_new(params, "id", json_integer(follow->id));
    bool moved = next > follow->chunk.offset;
    follow->chunk.offset = next;
    chunk_drop(&follow->chunk);
    follow->reading = true; /* the session may close: then it is this function that frees */
    if (failed)
        session_fail(follow->session, &follow->chunk.err);
    else if (moved || eof)
        session_notify(follow->session, "job.log", params);
    else
        json_decref(params);
    follow->reading = false;
    if (follow->session == NULL)
        follow_free(follow);
    else if (eof || failed)
        follow_over(follow);
    else if (follow->again || moved)
        follow_go(follow);
}

/* Reads the next chunk, unless one is being read or the client is behind. */
static void follow_go(struct follow *follow)
{
    follow->again = true;
    if (follow->reading || session_unread(follow->session) > SESSION_SOFT_BYTES)
        return;
    follow->again = false;
    follow->reading = true;
    follow->chunk.was_over = jobs_find(follow->daemon, follow->id) == NULL;
    follow->work.data = follow;
    if (uv_queue_work(follow->daemon->loop, &follow->work, follow_read, follow_sent) != 0)
        follow->reading = false;
}

static int follow_new(struct logs_request *request, int64_t offset, struct err *err)
{
    struct session *session = request->call->session;
    struct follow *follow = calloc(1, sizeof *follow);
    if (follow == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    chunk_init(&follow->chunk, request->daemon, request->id, offset);
    follow->session = session;
    follow->daemon = request->daemon;
    follow->id = request->id;
    follow->next = *session_follow(session);
    *session_follow(session) = follow;
    session_hold(session);
    return 0;
}

/* Nothing is sent here, so the list of follows stays as it is. */
static void wake_session(struct session *session, int64_t id)
{
    for (struct follow *follow = *session_follow(session); follow != NULL; follow = follow->next)
        if (follow->id == id)
            follow_go(follow);
}

static void wake(struct daemon *daemon, int64_t id)
{
    for (struct session *session = session_first(daemon); session != NULL;
         session = session_next(session))
        wake_session(session, id);
}

void logs_grew(struct daemon *daemon, int64_t id)
{
    wake(daemon, id);
}

void logs_ended(struct daemon *daemon, int64_t id)
{
    wake(daemon, id);
}

void logs_drained(struct session *session)
{
    for (struct follow *follow = *session_follow(session); follow != NULL; follow = follow->next)
        if (follow->again)
            follow_go(follow);
}

void logs_forget(struct session *session)
{
    struct follow *follow, *next;
    for (follow = *session_follow(session); follow != NULL; follow = next) {
        next = follow->next;
        follow->session = NULL;
        if (!follow->reading)
            follow_free(follow);
    }
    *session_follow(session) = NULL;
}

/* ── The call: whose job is it ─► read ─► answer ─► follow ── */

static void request_free(struct logs_request *request)
{
    json_decref(request->job.exit);
    chunk_drop(&request->chunk);
    free(request);
}

static void logs_read(uv_work_t *work)
{
    chunk_read(&((struct logs_request *)work->data)->chunk);
}

static void logs_answer(uv_work_t *work, int status)
{
    struct logs_request *request = work->data;
    struct err err = request->chunk.err;
    struct session *session = request->call->session;
    bool eof = false;
    int64_t next = 0;
    (void)status;
    json_t *result = err.code == 0 ? chunk_json(&request->chunk, &next, &eof) : NULL;
    if (err.code == 0 && request->follow && !eof && session != NULL)
        follow_new(request, next, &err);
    if (err.code != 0) {
        json_decref(result);
        call_fail(request->call, &err);
    } else {
        call_reply(request->call, result);
        if (request->follow && session != NULL)
            wake_session(session, request->id);
    }
    request_free(request);
}

static int owner_run(struct store_request *base, struct store *store, struct err *err)
{
    struct logs_request *request = (struct logs_request *)base;
    json_decref(request->job.exit);
    request->job.exit = NULL;
    return store_get_brief(store, request->id, &request->job, err);
}

static void owner_done(struct store_request *base, const struct err *err)
{
    struct logs_request *request = (struct logs_request *)base;
    struct err refused = *err;
    if (refused.code == 0 && !peer_owns(&request->call->peer, request->job.uid))
        err_set(&refused, ERR_DENIED, "job %lld is of uid %u", (long long)request->id,
                (unsigned)request->job.uid);
    if (refused.code == 0) {
        request->chunk.was_over = jobs_find(request->daemon, request->id) == NULL;
        request->work.data = request;
        if (uv_queue_work(request->daemon->loop, &request->work, logs_read, logs_answer) == 0)
            return;
        err_set(&refused, ERR_NOMEM, "out of memory");
    }
    call_fail(request->call, &refused);
    request_free(request);
}

static int check_follows(const struct call *call, struct err *err)
{
    size_t n = 0;
    for (struct follow *follow = *session_follow(call->session); follow != NULL;
         follow = follow->next)
        n++;
    if (n >= LOGS_FOLLOWS)
        return err_set(err, ERR_BUSY, "follow: at most %d logs at a time", LOGS_FOLLOWS);
    return 0;
}

int logs_call(struct daemon *daemon, struct call *call, struct err *err)
{
    const json_t *params = call->request.params;
    int64_t offset = json_integer_value(json_object_get(params, "offset"));
    bool follow = json_is_true(json_object_get(params, "follow"));
    if (offset < 0)
        return method_refuse(err, params, "offset", "at least 0");
    if (follow && check_follows(call, err) != 0)
        return err->code;
    struct logs_request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    request->base =
        (struct store_request){.kind = STORE_READ, .run = owner_run, .done = owner_done};
    request->daemon = daemon;
    request->call = call;
    request->id = json_integer_value(json_object_get(params, "id"));
    request->follow = follow;
    chunk_init(&request->chunk, daemon, request->id, offset);
    store_thread_submit(daemon->store, &request->base);
    return 0;
}
