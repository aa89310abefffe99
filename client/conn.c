/* conn.c: see conn.h. */
#include "client/conn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/json.h"
#include "proto/limits.h"
#include "proto/rpc.h"

enum { NOTIFICATIONS_MAX = 65536 };

struct conn {
    int fd, signals; /* signals: a signalfd or -1 */
    int keys;        /* standard input or -1 */
    sigset_t unblocked;
    bool eof;
    json_int_t last_id;
    struct rpc_framer framer;
    json_t *waiting; /* an array: notifications that came while a reply was awaited */
    char path[sizeof(struct sockaddr_un)];
};

/* The user daemon's socket in `dir`, which must be the caller's own: anybody may make
 * /tmp/traind-UID. */
static bool own_socket(const char *dir, char *buf, size_t size)
{
    struct stat st;
    int n = snprintf(buf, size, "%s/traind.sock", dir);
    return n > 0 && (size_t)n < size && stat(dir, &st) == 0 && st.st_uid == getuid() &&
           stat(buf, &st) == 0;
}

/* Both places: the daemon may have been started from another kind of session than this. */
static bool find_user_socket(char *buf, size_t size)
{
    char dir[256];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime != NULL && runtime[0] != '\0') {
        int n = snprintf(dir, sizeof dir, "%s/traind", runtime);
        if (n > 0 && (size_t)n < sizeof dir && own_socket(dir, buf, size))
            return true;
    }
    snprintf(dir, sizeof dir, "/tmp/traind-%lu", (unsigned long)getuid());
    return own_socket(dir, buf, size);
}

int conn_path(const char *option, char *buf, size_t size, struct err *err)
{
    const char *given = option != NULL ? option : getenv("TRAIND_SOCKET");
    if (given == NULL || given[0] == '\0') {
        if (find_user_socket(buf, size))
            return 0;
        given = "/run/traind/traind.sock";
    }
    if (strlen(given) >= size || strlen(given) >= sizeof((struct sockaddr_un){0}.sun_path))
        return err_set(err, ERR_USAGE, "the socket's path is longer than %zu bytes: %s",
                       sizeof((struct sockaddr_un){0}.sun_path) - 1, given);
    strcpy(buf, given);
    return 0;
}

static int explain_connect(int errnum, const char *path, struct err *err)
{
    if (errnum == ENOENT || errnum == ENOTDIR)
        return err_set(err, ERR_UNREACHABLE,
                       "traind is not running: no socket at %s; start it with `traind --user`, or "
                       "name its socket with --socket or TRAIND_SOCKET",
                       path);
    if (errnum == ECONNREFUSED)
        return err_set(err, ERR_UNREACHABLE,
                       "traind is not running: nobody answers at %s; start it with `traind --user`",
                       path);
    if (errnum == EACCES || errnum == EPERM)
        return err_set(err, ERR_DENIED,
                       "you may not open %s; its group may: are you a member of it?", path);
    return err_set(err, ERR_UNREACHABLE, "cannot reach traind at %s: %s", path, strerror(errnum));
}

int conn_open(const char *path, struct conn **ret_conn, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    conn->fd = conn->signals = conn->keys = -1;
    conn->waiting = json_array();
    if (conn->waiting == NULL) {
        conn_close(conn);
        return err_set(err, ERR_NOMEM, "out of memory");
    }
    snprintf(conn->path, sizeof conn->path, "%s", path);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    conn->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0 || connect(conn->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int rc = explain_connect(errno, path, err);
        conn_close(conn);
        return rc;
    }
    *ret_conn = conn;
    return 0;
}

void conn_close(struct conn *conn)
{
    if (conn == NULL)
        return;
    if (conn->signals >= 0) {
        close(conn->signals);
        sigprocmask(SIG_SETMASK, &conn->unblocked, NULL);
    }
    if (conn->fd >= 0)
        close(conn->fd);
    rpc_framer_done(&conn->framer);
    json_decref(conn->waiting);
    free(conn);
}

int conn_watch_signals(struct conn *conn, struct err *err)
{
    struct sigaction interrupt;
    sigset_t set;
    if (conn->signals >= 0)
        return 0;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    if (sigaction(SIGINT, NULL, &interrupt) == 0 && interrupt.sa_handler != SIG_IGN)
        sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, &conn->unblocked) < 0)
        return err_errno(err, errno, "cannot block signals");
    conn->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (conn->signals < 0) {
        int rc = err_errno(err, errno, "cannot watch for signals");
        sigprocmask(SIG_SETMASK, &conn->unblocked, NULL);
        return rc;
    }
    return 0;
}

void conn_watch_keys(struct conn *conn)
{
    conn->keys = STDIN_FILENO;
}

static int gone(struct conn *conn, struct err *err)
{
    return err_set(err, ERR_UNREACHABLE, "traind at %s closed the connection", conn->path);
}

static int send_line(struct conn *conn, json_t *message, struct err *err)
{
    char *line = message != NULL ? json_line(message) : NULL;
    if (line == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    size_t size = strlen(line), sent = 0;
    line[size++] = '\n'; /* in the place of the NUL */
    int rc =
        size > LIMIT_LINE_BYTES
            ? err_set(err, ERR_REQUEST, "the request is longer than %d bytes", LIMIT_LINE_BYTES)
            : 0;
    while (rc == 0 && sent < size) {
        ssize_t n = send(conn->fd, line + sent, size - sent, MSG_NOSIGNAL);
        if (n >= 0)
            sent += (size_t)n;
        else if (errno != EINTR)
            rc = gone(conn, err);
    }
    free(line);
    return rc;
}

/* The next message among the bytes at hand. 1 with *ret_message (a new reference), or 0. */
static int take_message(struct conn *conn, json_t **ret_message, struct err *err)
{
    const char *line;
    size_t size;
    if (!rpc_framer_next(&conn->framer, conn->eof, &line, &size))
        return 0;
    int rc = json_load(line, size, ERR_PARSE, ret_message, err);
    if (rc < 0)
        return err_context(err, "traind at %s does not speak its protocol", conn->path);
    return 1;
}

static int read_signal(struct conn *conn)
{
    struct signalfd_siginfo info;
    while (read(conn->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGINT)
            return CONN_INTERRUPT;
    return CONN_RESIZE;
}

static int read_bytes(struct conn *conn, struct err *err)
{
    char bytes[65536];
    ssize_t n = recv(conn->fd, bytes, sizeof bytes, 0);
    if (n < 0)
        return errno == EINTR ? 0 : gone(conn, err);
    conn->eof = n == 0;
    return rpc_framer_feed(&conn->framer, bytes, (size_t)n, err);
}

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits for the next message of any kind: an enum conn_event (CONN_NOTIFICATION: a message).
 * `output` is a descriptor whose reader is watched, `input` one that is waited for, or -1. */
static int wait_message(struct conn *conn, int timeout_ms, int output, int input,
                        json_t **ret_message, struct err *err)
{
    long deadline = now_ms() + timeout_ms;
    for (;;) {
        int rc = take_message(conn, ret_message, err);
        if (rc != 0)
            return rc < 0 ? rc : CONN_NOTIFICATION;
        if (conn->eof)
            return gone(conn, err);
        /* Without events asked for, a pipe still reports that its reader has gone. */
        struct pollfd fds[] = {
            {conn->fd, POLLIN, 0}, {conn->signals, POLLIN, 0}, {output, 0, 0}, {input, POLLIN, 0}};
        long left = deadline - now_ms();
        rc = poll(fds, 4, timeout_ms < 0 ? -1 : left < 0 ? 0 : (int)left);
        if (rc < 0 && errno != EINTR)
            return err_errno(err, errno, "poll");
        if (rc == 0)
            return CONN_TIMEOUT;
        if (rc > 0 && fds[1].revents != 0)
            return read_signal(conn);
        if (rc > 0 && ((fds[2].revents & POLLERR) != 0 || (fds[3].revents & POLLHUP) != 0))
            return CONN_NO_READER;
        if (rc > 0 && fds[3].revents != 0)
            return CONN_KEY;
        if (rc > 0 && fds[0].revents != 0 && (rc = read_bytes(conn, err)) < 0)
            return rc;
    }
}

int conn_next(struct conn *conn, int timeout_ms, json_t **ret_notification, struct err *err)
{
    if (json_array_size(conn->waiting) > 0) {
        *ret_notification = json_incref(json_array_get(conn->waiting, 0));
        json_array_remove(conn->waiting, 0);
        return CONN_NOTIFICATION;
    }
    for (;;) {
        int event =
            wait_message(conn, timeout_ms, STDOUT_FILENO, conn->keys, ret_notification, err);
        if (event != CONN_NOTIFICATION || json_object_get(*ret_notification, "method") != NULL)
            return event;
        json_decref(*ret_notification); /* a reply that nobody waits for any more */
    }
}

/* Whether `message` answers request `id`. An answer without an id is to a line that could not be
 * read, and ends this call too. */
static bool is_reply(const json_t *message, json_int_t id)
{
    const json_t *echoed = json_object_get(message, "id");
    return json_object_get(message, "method") == NULL &&
           (json_is_null(echoed) || json_integer_value(echoed) == id);
}

static int keep(struct conn *conn, json_t *message, struct err *err)
{
    if (json_array_size(conn->waiting) >= NOTIFICATIONS_MAX)
        return err_set(err, ERR_PARSE, "traind sent %d notifications instead of an answer",
                       NOTIFICATIONS_MAX);
    if (json_object_get(message, "method") != NULL && json_array_append(conn->waiting, message) < 0)
        return err_set(err, ERR_NOMEM, "out of memory");
    return 0;
}

static int wait_reply(struct conn *conn, json_int_t id, json_t **ret_result, struct err *err)
{
    for (;;) {
        json_t *message, *result;
        int rc = wait_message(conn, -1, -1, -1, &message, err);
        if (rc == CONN_INTERRUPT)
            return err_set(err, ERR_CANCELLED, "interrupted");
        if (rc < 0)
            return rc;
        if (rc != CONN_NOTIFICATION)
            continue;
        bool answered = is_reply(message, id);
        rc = answered ? rpc_reply_parse(message, &result, err) : keep(conn, message, err);
        if (rc == 0 && answered)
            *ret_result = json_incref(result);
        json_decref(message);
        if (rc < 0 || answered)
            return rc;
    }
}

int conn_call(struct conn *conn, enum method method, json_t *params, json_t **ret_result,
              struct err *err)
{
    json_int_t id = ++conn->last_id;
    json_t *request = params != NULL ? rpc_request_new(id, method_def(method)->name, params) : NULL;
    int rc = send_line(conn, request, err);
    json_decref(request);
    json_decref(params);
    return rc < 0 ? rc : wait_reply(conn, id, ret_result, err);
}
