/* statedir.h: the daemon's own directory and the lock that keeps it to one daemon. */
#ifndef DAEMON_STATEDIR_H
#define DAEMON_STATEDIR_H

#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"

/* Makes `path` and what is missing above it (0700), checks that it is a directory of ours that
 * nobody else can enter, makes PATH/jobs, takes the lock (waiting two seconds at most).
 * *ret_fd holds it until statedir_close. Errors: ERR_IO, ERR_BUSY if another daemon has it. */
int statedir_open(const char *path, int *ret_fd, struct err *err);
/* Gives up the lock; a negative `fd` is allowed. */
void statedir_close(int fd);

/* "STATE/jobs/ID" for a job, or "STATE/jobs/ID/FILE"; `file` NULL: the directory. Returns `buf`. */
const char *statedir_job(const char *state, int64_t id, const char *file, char *buf, size_t size);

/* Makes the missing parents of `path`, 0755 less the umask. Errors: ERR_IO. */
int statedir_make_parents(const char *path, struct err *err);

#endif
