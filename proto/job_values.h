/* job_values.h: what a key holds that holds several values; a part of job.h. */
#ifndef PROTO_JOB_VALUES_H
#define PROTO_JOB_VALUES_H

#include <stddef.h>
#include <stdint.h>

struct job_numbers { /* one number for all, or one a channel, a class, … */
    size_t n;        /* 0: not given */
    double *v;
};

struct job_ints {
    size_t n; /* 0: not given */
    int64_t *v;
};

#endif
