/* session.c: see session.h.
 *
 *     open ──(EOF, bad line)──► draining ──(answered, written, not held)──► closing
 *       └───────────────(error, hard cap)──────────────────────────────────►
 */
#define _GNU_SOURCE /* struct ucred */
#include "daemon/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/logs.h"
#include "daemon/methods.h"
#include "daemon/watch.h"
#include "proto/json.h"

struct session {
    struct daemon *daemon;
    uv_pipe_t pipe;
    uv_poll_t hangup; /* on a second descriptor, once no input is read any more */
    int hangup_fd;    /* -1: not watched */
    int n_handles;
    struct peer peer;
    struct rpc_framer framer;
    LIST_HEAD(, call) calls;
    size_t n_calls, n_bulky;
    size_t holds;
    bool eof;  /* no more input comes */
    bool deaf; /* after a line that breaks the framing: what is left is not read */
    bool reading, processing, closing;
    struct watch *watch;
    struct follow *follow;
    LIST_ENTRY(session) link;
};

struct write {
    uv_write_t request;
    struct session *session;
    char *line;
};

static void process(struct session *session);

bool peer_owns(const struct peer *peer, uid_t uid)
{
    return peer->admin || peer->uid == uid;
}

struct session *session_first(struct daemon *daemon)
{
    return LIST_FIRST(&daemon->sessions.list);
}

struct session *session_next(struct session *session)
{
    return LIST_NEXT(session, link);
}

struct watch **session_watch(struct session *session)
{
    return &session->watch;
}

struct follow **session_follow(struct session *session)
{
    return &session->follow;
}

struct daemon *session_daemon(struct session *session)
{
    return session->daemon;
}

const struct peer *session_peer(const struct session *session)
{
    return &session->peer;
}

size_t session_unread(const struct session *session)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&session->pipe);
}

void session_hold(struct session *session)
{
    session->holds++;
}

/* Calls may still be open: their replies will be for nobody. */
static void on_closed(uv_handle_t *handle)
{
    struct session *session = handle->data;
    if (--session->n_handles > 0)
        return;
    if (session->hangup_fd >= 0)
        close(session->hangup_fd);
    rpc_framer_done(&session->framer);
    free(session);
}

static void close_session(struct session *session)
{
    struct call *call;
    if (session->closing)
        return;
    session->closing = true;
    while ((call = LIST_FIRST(&session->calls)) != NULL) {
        LIST_REMOVE(call, link);
        call->session = NULL;
    }
    watch_forget(session);
    logs_forget(session);
    wait_forget(session->daemon);
    LIST_REMOVE(session, link);
    session->daemon->sessions.n--;
    uv_close((uv_handle_t *)&session->pipe, on_closed);
    if (session->hangup_fd >= 0)
        uv_close((uv_handle_t *)&session->hangup, on_closed);
}

void session_close_all(struct daemon *daemon)
{
    struct session *session;
    while ((session = LIST_FIRST(&daemon->sessions.list)) != NULL)
        close_session(session);
}

/* Closes a session that has nothing left to do. */
static void close_if_done(struct session *session)
{
    if (session->eof && session->n_calls == 0 && session->holds == 0 && !session->processing &&
        session_unread(session) == 0)
        close_session(session);
}

void session_release(struct session *session)
{
    session->holds--;
    close_if_done(session);
}

static void on_written(uv_write_t *request, int status)
{
    struct write *write = request->data;
    struct session *session = write->session;
    free(write->line);
    free(write);
    if (session->closing)
        return;
    if (status != 0) {
        close_session(session);
        return;
    }
    if (session_unread(session) <= SESSION_SOFT_BYTES / 2) {
        watch_drained(session);
        logs_drained(session);
        process(session);
    }
}

/* Queues one message, which is consumed; NULL (no memory) closes: a reply is never left out. */
static void send_message(struct session *session, json_t *message)
{
    char *line = message != NULL ? json_line(message) : NULL;
    struct write *write = malloc(sizeof *write);
    json_decref(message);
    if (line == NULL || write == NULL)
        goto fail;
    size_t size = strlen(line);
    size_t unread = session_unread(session); /* nothing: whatever it asked for, it may have */
    if (unread > 0 && unread + size > SESSION_HARD_BYTES) {
        log_warning("a client of uid %u does not read: closed", (unsigned)session->peer.uid);
        goto fail;
    }
    line[size] = '\n'; /* in the place of the NUL */
    *write = (struct write){.session = session, .line = line, .request.data = write};
    uv_buf_t buf = uv_buf_init(line, (unsigned)size + 1);
    if (uv_write(&write->request, (uv_stream_t *)&session->pipe, &buf, 1, on_written) == 0)
        return;
fail:
    free(line);
    free(write);
    close_session(session);
}

void session_notify(struct session *session, const char *method, json_t *params)
{
    if (!session->closing)
        send_message(session, params != NULL ? rpc_notification_new(method, params) : NULL);
    json_decref(params);
}

/* Sends a call's answer and frees the call. A notification has no answer. */
static void finish_call(struct call *call, json_t *message)
{
    struct session *session = call->session;
    bool wanted = session != NULL && call->request.id != NULL;
    if (session != NULL) {
        LIST_REMOVE(call, link);
        session->n_calls--;
        session->n_bulky -= call->bulky;
    }
    rpc_request_done(&call->request);
    free(call);
    if (wanted)
        send_message(session, message);
    else
        json_decref(message);
    if (session != NULL && !session->closing && !session->processing)
        process(session);
}

void call_reply(struct call *call, json_t *result)
{
    struct err err = ERR_INIT;
    if (result == NULL) {
        err_set(&err, ERR_NOMEM, "out of memory");
        call_fail(call, &err);
        return;
    }
    json_t *message = rpc_result_new(call->request.id, result);
    json_decref(result);
    finish_call(call, message);
}

void call_fail(struct call *call, const struct err *err)
{
    finish_call(call, rpc_error_new(call->request.id, err));
}

void call_bulky(struct call *call)
{
    call->bulky = true;
    call->session->n_bulky++;
}

void session_fail(struct session *session, const struct err *err)
{
    send_message(session, rpc_error_new(NULL, err));
    session->eof = session->deaf = true;
}

/* A line that is no request. Where the framing itself is in doubt there can be no more. */
static void refuse_line(struct session *session, json_t *id, const struct err *err)
{
    if (err->code == ERR_PARSE)
        session_fail(session, err);
    else
        send_message(session, rpc_error_new(id, err));
}

static void handle_line(struct session *session, const char *line, size_t size)
{
    struct err err = ERR_INIT;
    struct call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        err_set(&err, ERR_NOMEM, "out of memory");
        refuse_line(session, NULL, &err);
        return;
    }
    if (rpc_request_parse(line, size, &call->request, &err) != 0) {
        refuse_line(session, call->request.id, &err);
        rpc_request_done(&call->request);
        free(call);
        return;
    }
    call->session = session;
    call->peer = session->peer;
    LIST_INSERT_HEAD(&session->calls, call, link);
    session->n_calls++;
    methods_call(session->daemon, call);
}

static bool throttled(const struct session *session)
{
    return session->n_calls >= SESSION_CALLS || session->n_bulky > 0 ||
           session_unread(session) > SESSION_SOFT_BYTES;
}

static void allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct session *session = handle->data;
    (void)suggested;
    *buf = uv_buf_init(session->daemon->sessions.buffer, SESSION_BUFFER_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct session *session = stream->data;
    struct err err = ERR_INIT;
    if (n == UV_EOF)
        session->eof = true;
    else if (n < 0) {
        close_session(session);
        return;
    } else if (!session->eof &&
               rpc_framer_feed(&session->framer, buf->base, (size_t)n, &err) != 0) {
        session_fail(session, &err);
    }
    if (!session->closing)
        process(session);
}

static void set_reading(struct session *session, bool reading)
{
    if (session->reading == reading)
        return;
    session->reading = reading;
    if (reading)
        uv_read_start((uv_stream_t *)&session->pipe, allocate, on_read);
    else
        uv_read_stop((uv_stream_t *)&session->pipe);
}

static void on_hangup(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    close_session(poll->data);
}

/* A client that has closed its half may still be gone before its answer comes, which nothing but a
 * hangup tells: a wait for a long job would keep its place until then. Polling for urgent data,
 * which a Unix socket never has, reports hangups alone. */
static void watch_hangup(struct session *session)
{
    uv_os_fd_t fd;
    if (session->hangup_fd >= 0 || uv_fileno((uv_handle_t *)&session->pipe, &fd) != 0)
        return;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) /* without descriptors it is found out later, by writing */
        return;
    if (uv_poll_init(session->daemon->loop, &session->hangup, copy) != 0) {
        close(copy);
        return;
    }
    session->hangup_fd = copy;
    session->hangup.data = session;
    session->n_handles++;
    uv_poll_start(&session->hangup, UV_PRIORITIZED, on_hangup);
}

/* Handles the lines that are there, as far as the client may go. */
static void process(struct session *session)
{
    const char *line;
    size_t size;
    if (session->closing || session->processing)
        return;
    session->processing = true; /* a handler may answer at once, which leads here again */
    while (!session->closing && !session->deaf && !throttled(session) &&
           rpc_framer_next(&session->framer, session->eof, &line, &size))
        handle_line(session, line, size);
    session->processing = false;
    if (session->closing)
        return;
    set_reading(session, !session->eof && !throttled(session));
    if (!throttled(session))
        close_if_done(session);
    if (session->eof && !session->closing)
        watch_hangup(session);
}

/* Supplementary groups as the kernel keeps them for the connection: no name service is asked. */
static bool in_group(int fd, gid_t gid)
{
    gid_t groups[1024];
    socklen_t size = sizeof groups;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0)
        return false;
    for (size_t i = 0; i < size / sizeof groups[0]; i++)
        if (groups[i] == gid)
            return true;
    return false;
}

static int read_peer(const struct config *config, int fd, struct peer *ret_peer)
{
    const struct config_group *admins = &config->admin_group;
    struct ucred cred;
    socklen_t size = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0)
        return ERR_IO;
    *ret_peer = (struct peer){.uid = cred.uid, .gid = cred.gid, .pid = cred.pid};
    ret_peer->admin = cred.uid == 0 || cred.uid == geteuid() ||
                      (admins->exists && (cred.gid == admins->gid || in_group(fd, admins->gid)));
    return 0;
}

static bool has_room(struct daemon *daemon, uid_t uid)
{
    size_t n = 0;
    struct session *session;
    if (uid == 0 || uid == geteuid())
        return daemon->sessions.n < SESSION_MAX;
    if (daemon->sessions.n >= SESSION_MAX - SESSION_RESERVED)
        return false;
    LIST_FOREACH(session, &daemon->sessions.list, link)
    n += session->peer.uid == uid;
    return n < SESSION_MAX_PER_UID;
}

/* Tells a client why it is not served; nothing waits for it to read that. */
static void turn_away(int fd)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_BUSY, "too many connections");
    json_t *message = rpc_error_new(NULL, &err);
    char *line = message != NULL ? json_line(message) : NULL;
    json_decref(message);
    if (line != NULL) {
        size_t size = strlen(line);
        line[size] = '\n';
        ssize_t sent = send(fd, line, size + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)sent;
    }
    free(line);
    close(fd);
}

void session_accept(struct daemon *daemon, int fd)
{
    struct peer peer;
    struct session *session;
    if (read_peer(daemon->config, fd, &peer) != 0) {
        close(fd);
        return;
    }
    if (!has_room(daemon, peer.uid) || (session = calloc(1, sizeof *session)) == NULL) {
        turn_away(fd);
        return;
    }
    session->daemon = daemon;
    session->peer = peer;
    LIST_INIT(&session->calls);
    session->hangup_fd = -1;
    session->n_handles = 1;
    uv_pipe_init(daemon->loop, &session->pipe, 0);
    session->pipe.data = session;
    LIST_INSERT_HEAD(&daemon->sessions.list, session, link);
    daemon->sessions.n++;
    if (uv_pipe_open(&session->pipe, fd) != 0) {
        close(fd);
        close_session(session);
        return;
    }
    process(session);
}
