/* job_queue.h: when a job may run, as the daemon's queue sees it. Plain data of a parsed document.
 */
#ifndef PROTO_JOB_QUEUE_H
#define PROTO_JOB_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/job_values.h"

enum { JOB_PRIORITY_MOST = 100, JOB_DURATION_SIZE = 32 };

struct job_queue {
    int64_t priority;      /* the larger goes first; above 0 is an administrator's */
    int64_t time_limit_s;  /* of running, over all attempts; 0: none */
    struct job_ints after; /* ids of the jobs that must have completed */
    bool hold;             /* wait until somebody releases it */
};

/* Seconds of "2h", "30m" or "1-12:00:00", as a document says them; -1: it says none. */
int64_t job_duration_read(const char *text);
/* "2h", "90m", "30s": seconds as a document says them; returns `buf`. */
const char *job_duration_format(int64_t seconds, char buf[static JOB_DURATION_SIZE]);

#endif
