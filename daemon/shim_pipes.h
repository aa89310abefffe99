/* shim_pipes.h: copies what a job says into the daemon's files, within bounds.
 *
 * The pipes are always drained, whatever happens to the files: a full disk costs output, never the
 * job. Reading ends of the pipes are non-blocking.
 */
#ifndef DAEMON_SHIM_PIPES_H
#define DAEMON_SHIM_PIPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

/* An append-only file of the daemon. */
struct shim_file {
    int fd;
    int64_t size;
};

/* The job's standard output and error, byte by byte. */
struct shim_log {
    int pipe; /* -1: closed */
    struct shim_file file;
    bool cut;        /* LIMIT_LOG_BYTES are reached, and the log says so */
    int64_t lost;    /* bytes that could not be written, not yet mentioned in the log */
    int lost_errnum; /* and why */
    bool fresh_line; /* the file ends with '\n', or is empty */
};

/* The report pipe, line by line. Of lines beyond LIMIT_REPORTS_PER_SECOND, or that a full disk
 * refuses, the latest is kept back and written later: so the last word of a job is never lost. */
struct shim_reports {
    int pipe; /* -1: closed */
    struct shim_file file;
    size_t used;   /* bytes of the unfinished line in `line` */
    bool skipping; /* the unfinished line is too long: nothing of it is kept */
    size_t held;   /* bytes of the line kept back, 0: none */
    int n_written; /* lines since window_ns */
    int64_t window_ns;
    char line[LIMIT_REPORT_BYTES];
    char held_line[LIMIT_REPORT_BYTES];
};

/* Opens DIR/log; returns 0 or an errno. `pipe` becomes the log's. */
int shim_log_open(struct shim_log *log, int dir_fd, int pipe);
/* Copies at most `limit` bytes of what is there; at the end of the file the pipe is closed. Returns
 * how many were taken from the pipe. */
size_t shim_log_read(struct shim_log *log, size_t limit);
/* After the last read: mentions what was lost and syncs the file. False: the disk is still full. */
bool shim_log_finish(struct shim_log *log);

int shim_reports_open(struct shim_reports *reports, int dir_fd, int pipe);
size_t shim_reports_read(struct shim_reports *reports, size_t limit, int64_t now_ns);
/* When shim_reports_flush has something to do, or SHIM_NEVER. */
int64_t shim_reports_due(const struct shim_reports *reports);
void shim_reports_flush(struct shim_reports *reports, int64_t now_ns);
/* After the last read: writes what is held and a last line without its '\n', and syncs. False: the
 * disk is still full; to be tried again. */
bool shim_reports_finish(struct shim_reports *reports);

/* Takes what the pipe of a job that has ended still holds: a bounded amount, for a stranger may
 * have been handed its other end. */
size_t shim_pipe_rest(int pipe);

#endif
