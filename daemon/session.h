/* session.h: one client's connection: lines in, replies and notifications out. The loop's thread.
 *
 * A session reads requests as fast as it can answer them: with too many unanswered, a large answer
 * under way, or too much unread by the client, it stops reading. After the client's half-close it
 * lives until its replies are sent and nothing holds it any more (a watch, a follow).
 */
#ifndef DAEMON_SESSION_H
#define DAEMON_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "proto/err.h"
#include "proto/rpc.h"

enum {
    SESSION_MAX = 512,              /* connections */
    SESSION_RESERVED = 16,          /* of them, for root and the daemon's own user */
    SESSION_MAX_PER_UID = 128,      /* root and the daemon's own user excepted */
    SESSION_CALLS = 64,             /* unanswered requests of one connection */
    SESSION_SOFT_BYTES = 256 << 10, /* unread by the client: stop reading, coalesce events */
    SESSION_HARD_BYTES = 32 << 20,  /* unread by the client: close */
    SESSION_BUFFER_BYTES = 64 << 10,
};

struct daemon;
struct session;
struct watch;
struct follow;

/* Who is at the other end, as the kernel says. */
struct peer {
    uid_t uid;
    gid_t gid;
    pid_t pid;
    bool admin;
};

LIST_HEAD(session_list, session);
struct sessions {
    struct session_list list;
    size_t n;
    char buffer[SESSION_BUFFER_BYTES]; /* of the read that is under way */
};

/* A request that waits for its reply. It outlives its session if that closes first. */
struct call {
    struct session *session; /* NULL: gone, the reply is for nobody */
    struct peer peer;
    struct rpc_request request;
    bool bulky;
    LIST_ENTRY(call) link;
};

/* Takes over a client's descriptor, or turns it away with `busy`. */
void session_accept(struct daemon *daemon, int fd);
void session_close_all(struct daemon *daemon);

/* Answers and frees the call. `result` is stolen; NULL means that memory ran out. */
void call_reply(struct call *call, json_t *result);
void call_fail(struct call *call, const struct err *err);

/* The answer may be large: the session's next requests are looked at when it has been sent, so that
 * what one client can make the daemon hold stays small. */
void call_bulky(struct call *call);

/* Queues one notification; `params` is stolen. */
void session_notify(struct session *session, const char *method, json_t *params);
/* An error that belongs to no call: the client gets it as the last line, then the end. */
void session_fail(struct session *session, const struct err *err);
/* Bytes that the client has not read yet. */
size_t session_unread(const struct session *session);
void session_hold(struct session *session);
void session_release(struct session *session);

/* All sessions, in no order. */
struct session *session_first(struct daemon *daemon);
struct session *session_next(struct session *session);

/* What watch.c and logs.c keep in a session; NULL: nothing. */
struct watch **session_watch(struct session *session);
struct follow **session_follow(struct session *session);
struct daemon *session_daemon(struct session *session);
const struct peer *session_peer(const struct session *session);

/* Allowed to see all of a job and to change it. */
bool peer_owns(const struct peer *peer, uid_t uid);

#endif
