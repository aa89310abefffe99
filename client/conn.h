/* conn.h: a connection to the daemon: calls, and the notifications that arrive between replies.
 *
 *     conn_open(path, &conn, &err);
 *     conn_call(conn, METHOD_JOB_SHOW, params, &result, &err);      // blocks for its own reply
 *     conn_next(conn, timeout_ms, &notification, &err);             // then events, in order
 *     conn_close(conn);
 *
 * Plain blocking use of one socket, by one thread. Lines are bounded (LIMIT_LINE_BYTES), and so are
 * the notifications kept while a reply is awaited. When the daemon goes away every call fails with
 * ERR_UNREACHABLE; an answer that is an error comes back as that error, with its code and path.
 */
#ifndef CLIENT_CONN_H
#define CLIENT_CONN_H

#include <jansson.h>
#include <stddef.h>

#include "proto/err.h"
#include "proto/methods.h"

struct conn;

/* The socket to talk to: `option` (--socket) or TRAIND_SOCKET if set, else the first that exists of
 * the user's own daemon's and the system's. Writes at most `size` bytes. Errors: ERR_USAGE (too
 * long for a socket's address). */
int conn_path(const char *option, char *buf, size_t size, struct err *err);

/* Errors: ERR_UNREACHABLE (no socket, or nobody behind it), ERR_DENIED, ERR_NOMEM. */
int conn_open(const char *path, struct conn **ret_conn, struct err *err);
/* Takes NULL. */
void conn_close(struct conn *conn);

/* Calls `method`; `params` is consumed, also on failure; NULL stands for an allocation that failed.
 * *ret_result is a new reference. Errors: the daemon's, ERR_UNREACHABLE, ERR_PARSE (the answer is
 * not the protocol's), ERR_CANCELLED (interrupted), ERR_NOMEM. */
int conn_call(struct conn *conn, enum method method, json_t *params, json_t **ret_result,
              struct err *err);

enum conn_event {
    CONN_NOTIFICATION, /* *ret_notification is a new reference: {"method", "params"} */
    CONN_TIMEOUT,
    CONN_INTERRUPT, /* Ctrl-C, after conn_watch_signals */
    CONN_RESIZE,    /* the terminal's size changed, likewise */
    CONN_NO_READER, /* standard output is a pipe whose reader has gone, or the terminal has */
    CONN_KEY,       /* standard input can be read, after conn_watch_keys */
};

/* Waits for the next notification. `timeout_ms` -1: without end. Returns an enum conn_event, or
 * ERR_UNREACHABLE, ERR_PARSE, ERR_NOMEM. */
int conn_next(struct conn *conn, int timeout_ms, json_t **ret_notification, struct err *err);

/* From now on SIGINT and SIGWINCH end a wait instead of the program (SIGINT only where it is not
 * ignored), until conn_close. Errors: ERR_IO. */
int conn_watch_signals(struct conn *conn, struct err *err);

/* From now on what comes on standard input ends a wait. */
void conn_watch_keys(struct conn *conn);

#endif
