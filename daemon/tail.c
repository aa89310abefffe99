/* tail.c: pread at an offset that only whole lines move. */
#include "daemon/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/proc.h"

void tail_init(struct tail *tail, int64_t offset)
{
    *tail = (struct tail){.fd = -1, .offset = offset};
}

void tail_done(struct tail *tail)
{
    if (tail->fd >= 0)
        close(tail->fd);
    tail->fd = -1;
}

bool tail_fill(struct tail *tail, const char *path, struct tail_buffer *buffer)
{
    buffer->used = buffer->at = 0;
    if (tail->fd < 0)
        tail->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    tail->is_short = tail->fd < 0 && proc_is_short(errno);
    if (tail->fd < 0)
        return false;
    ssize_t n;
    do
        n = pread(tail->fd, buffer->data, sizeof buffer->data, (off_t)tail->offset);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    buffer->used = (size_t)n;
    if (memchr(buffer->data, '\n', buffer->used) != NULL)
        return true;
    if (buffer->used < sizeof buffer->data && !tail->skipping)
        return false;
    tail->skipping = true; /* nothing here is a line: pass over it */
    tail->offset += n;
    buffer->used = 0;
    return true;
}

bool tail_next(struct tail *tail, struct tail_buffer *buffer, const char **ret_line,
               size_t *ret_size)
{
    while (buffer->at < buffer->used) {
        const char *line = buffer->data + buffer->at;
        const char *end = memchr(line, '\n', buffer->used - buffer->at);
        if (end == NULL)
            return false;
        size_t size = (size_t)(end - line);
        bool whole = !tail->skipping;
        buffer->at += size + 1;
        tail->offset += (int64_t)size + 1;
        tail->skipping = false;
        if (whole) {
            *ret_line = line;
            *ret_size = size;
            return true;
        }
    }
    return false;
}
