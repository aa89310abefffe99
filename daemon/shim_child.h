/* shim_child.h: starts the job's program with the rights of its user and nothing else. */
#ifndef DAEMON_SHIM_CHILD_H
#define DAEMON_SHIM_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "daemon/shim.h"

enum { CHILD_FIRST_FREE_FD = 4 }; /* 0..3 are the job's */

struct shim_child_fds {
    int document, log, report; /* become 0, 1 and 2, 3 of the job; all above 3 */
};

/* Forks. The child goes through the steps of shim_child.c and becomes the program; *ret_status_fd
 * (non-blocking, close-on-exec) tells how that went: end of file once the program runs, else the
 * step that failed. The child leads its own session, so its pid is its process group. Returns its
 * pid, or -1 with errno. */
pid_t shim_child_start(const struct shim_options *options, const struct shim_child_fds *fds,
                       int *ret_status_fd);

enum shim_child_state { CHILD_STARTING, CHILD_RUNNING, CHILD_FAILED };

/* Reads the status descriptor when it is readable; CHILD_FAILED puts a sentence into `message`. */
enum shim_child_state shim_child_status(const struct shim_options *options, int status_fd,
                                        char *message, size_t size);

#endif
