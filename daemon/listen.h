/* listen.h: the socket that clients connect to. The loop's thread.
 *
 * accept(2) is our own: libuv answers a lack of descriptors by dropping every client that waits.
 * Here they stay in the kernel's queue until there are descriptors again.
 */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include "daemon/config.h"
#include "proto/err.h"

struct uv_loop_s;
struct listener;

/* Binds and listens; clients wait until listener_start. A socket file where nobody answers is
 * replaced. Errors: ERR_BUSY if somebody answers, ERR_IO, ERR_NOMEM. */
int listener_open(struct uv_loop_s *loop, const struct config *config,
                  struct listener **ret_listener, struct err *err);
/* From now on every client is given to `accepted`, which owns the descriptor. */
void listener_start(struct listener *listener, void (*accepted)(void *arg, int fd), void *arg);
/* Unlinks the socket, closes, frees. NULL is allowed. */
void listener_close(struct listener *listener);

#endif
