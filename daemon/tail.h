/* tail.h: reads the whole lines of a growing file from an offset on. One thread. */
#ifndef DAEMON_TAIL_H
#define DAEMON_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

/* What a read found. Shared by many tails: a tail keeps no bytes, only an offset, so that an
 * unfinished line that its writer takes back does no harm. */
struct tail_buffer {
    char data[LIMIT_REPORT_BYTES];
    size_t used, at; /* lines before `at` were given out */
};

struct tail {
    int fd;         /* -1: not there yet */
    int64_t offset; /* behind the last line given out */
    bool is_short;  /* it could not be opened for want of descriptors: there may be more */
    bool skipping;  /* within a line longer than the buffer */
};

void tail_init(struct tail *tail, int64_t offset);
void tail_done(struct tail *tail);
/* Reads once at the offset, opening `path` if need be. False: nothing new. */
bool tail_fill(struct tail *tail, const char *path, struct tail_buffer *buffer);
/* The next whole line without its '\n' of what tail_fill read, valid until the next fill; false:
 * none. Advances the offset. Lines that do not fit the buffer are passed over. */
bool tail_next(struct tail *tail, struct tail_buffer *buffer, const char **ret_line,
               size_t *ret_size);

#endif
