/* detach.h: traind --detach: the command returns when the daemon serves, and the daemon goes on in
 * the background, in a session of its own.
 *
 *     detach ─┬─► child: serve … detach_ready ─► log into a file
 *             └─► parent: detach_wait ─► exit
 */
#ifndef DAEMON_DETACH_H
#define DAEMON_DETACH_H

#include <sys/types.h>

#include "proto/err.h"

/* Forks, as fork: *ret_pid is 0 in the child, which is the daemon from here on. *ret_fd: the end
 * that detach_ready writes (child), that detach_wait reads (parent). Errors: ERR_IO. */
int detach(pid_t *ret_pid, int *ret_fd, struct err *err);
/* In the parent: 0 when the daemon serves, else its exit status (it has said why). */
int detach_wait(pid_t pid, int fd);

/* STATE/traind.log, in `buf`, which it returns. */
const char *detach_log(const char *state, char *buf, size_t size);
/* In the child: what is logged goes into detach_log(state), and the parent may leave. `fd` -1: not
 * detached, nothing to do. Errors: ERR_IO: the log cannot be opened. */
int detach_ready(int fd, const char *state, struct err *err);

#endif
