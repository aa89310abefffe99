/* shim_pipes.c: bounded copying from the job's pipes to the daemon's files.
 *
 * A report line reaches its file whole or not at all (a short write is cut off again); a log may
 * lose a stretch when the disk is full, and then says how much. Both files stop at their limits.
 */
#define _GNU_SOURCE
#include "daemon/shim_pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/shim.h"

#define SECOND_NS INT64_C(1000000000)

static int file_open(struct shim_file *file, int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    struct stat st;
    if (fstat(fd, &st) < 0) {
        int errnum = errno;
        close(fd);
        return errnum;
    }
    file->fd = fd;
    file->size = st.st_size;
    return 0;
}

/* Appends as much as there is room for; returns that, with errno when it is less than `size`. */
static size_t file_append(struct shim_file *file, const char *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = write(file->fd, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    file->size += (int64_t)done;
    return done;
}

/* Reads once. 0: nothing now, or the end, in which case the pipe is closed. */
static size_t pipe_read(int *pipe, char *buf, size_t size)
{
    if (*pipe < 0 || size == 0)
        return 0;
    ssize_t n = read(*pipe, buf, size);
    if (n > 0)
        return (size_t)n;
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(*pipe);
        *pipe = -1;
    }
    return 0;
}

size_t shim_pipe_rest(int pipe)
{
    int n = pipe < 0 ? 0 : fcntl(pipe, F_GETPIPE_SZ);
    return n < 0 ? 0 : (size_t)n;
}

int shim_log_open(struct shim_log *log, int dir_fd, int pipe)
{
    *log = (struct shim_log){.pipe = pipe, .fresh_line = true};
    int errnum = file_open(&log->file, dir_fd, "log");
    if (errnum == 0 && log->file.size >= LIMIT_LOG_BYTES)
        log->cut = true;
    return errnum;
}

/* Our own words stand on a line of their own. */
static bool log_remark(struct shim_log *log, const char *text)
{
    char line[256];
    int n = snprintf(line, sizeof line, "%s[traind: %s]\n", log->fresh_line ? "" : "\n", text);
    bool whole = file_append(&log->file, line, (size_t)n) == (size_t)n;
    log->fresh_line = whole;
    return whole;
}

/* Once there is room again: how much is missing here. */
static bool log_mention_lost(struct shim_log *log)
{
    char text[192];
    snprintf(text, sizeof text, "%lld bytes of output were lost: %s", (long long)log->lost,
             strerror(log->lost_errnum));
    if (!log_remark(log, text))
        return false;
    log->lost = 0;
    return true;
}

static void log_append(struct shim_log *log, const char *data, size_t size)
{
    if (log->cut)
        return;
    if (log->lost > 0 && !log_mention_lost(log)) {
        log->lost += (int64_t)size;
        return;
    }
    int64_t room = LIMIT_LOG_BYTES - log->file.size;
    size_t fits = room < (int64_t)size ? (size_t)(room > 0 ? room : 0) : size;
    size_t done = file_append(&log->file, data, fits);
    if (done > 0)
        log->fresh_line = data[done - 1] == '\n';
    if (done < fits) {
        log->lost_errnum = errno;
        log->lost = (int64_t)(size - done);
    } else if (fits < size) {
        char text[96];
        snprintf(text, sizeof text, "the log was cut at %d MiB; what follows was dropped",
                 LIMIT_LOG_BYTES >> 20);
        log->cut = true;
        log_remark(log, text);
    }
}

size_t shim_log_read(struct shim_log *log, size_t limit)
{
    char buf[64 << 10];
    size_t n = pipe_read(&log->pipe, buf, limit < sizeof buf ? limit : sizeof buf);
    if (n > 0)
        log_append(log, buf, n);
    return n;
}

bool shim_log_finish(struct shim_log *log)
{
    return (log->lost == 0 || log_mention_lost(log)) && fdatasync(log->file.fd) == 0;
}

int shim_reports_open(struct shim_reports *reports, int dir_fd, int pipe)
{
    *reports = (struct shim_reports){.pipe = pipe};
    return file_open(&reports->file, dir_fd, "report.jsonl");
}

/* A line with its '\n', whole or not at all. */
static bool reports_append(struct shim_reports *reports, const char *line, size_t size)
{
    int64_t before = reports->file.size;
    if (file_append(&reports->file, line, size) == size) {
        reports->n_written++;
        return true;
    }
    if (reports->file.size > before && ftruncate(reports->file.fd, before) == 0)
        reports->file.size = before;
    return false;
}

static bool reports_full(const struct shim_reports *reports, size_t size)
{
    return reports->file.size + (int64_t)size > LIMIT_REPORT_FILE_BYTES;
}

/* Within rate and size, and when the disk takes it. */
static bool reports_try(struct shim_reports *reports, const char *line, size_t size)
{
    return reports->n_written < LIMIT_REPORTS_PER_SECOND && !reports_full(reports, size) &&
           reports_append(reports, line, size);
}

void shim_reports_flush(struct shim_reports *reports, int64_t now_ns)
{
    if (now_ns - reports->window_ns >= SECOND_NS) {
        reports->window_ns = now_ns;
        reports->n_written = 0;
    }
    if (reports->held > 0 && reports_try(reports, reports->held_line, reports->held))
        reports->held = 0;
}

int64_t shim_reports_due(const struct shim_reports *reports)
{
    if (reports->held == 0 || reports_full(reports, reports->held))
        return SHIM_NEVER;
    return reports->window_ns + SECOND_NS;
}

static void reports_line(struct shim_reports *reports, int64_t now_ns)
{
    shim_reports_flush(reports, now_ns);
    if (reports->held == 0 && reports_try(reports, reports->line, reports->used))
        return;
    memcpy(reports->held_line, reports->line, reports->used);
    reports->held = reports->used;
}

/* One more stretch of the unfinished line, its '\n' last if it has come. */
static void reports_take(struct shim_reports *reports, const char *data, size_t size,
                         int64_t now_ns)
{
    bool ends = data[size - 1] == '\n';
    if (size > sizeof reports->line - reports->used)
        reports->skipping = true;
    if (!reports->skipping) {
        memcpy(reports->line + reports->used, data, size);
        reports->used += size;
    }
    if (!ends)
        return;
    if (!reports->skipping && reports->used > 1)
        reports_line(reports, now_ns);
    reports->used = 0;
    reports->skipping = false;
}

size_t shim_reports_read(struct shim_reports *reports, size_t limit, int64_t now_ns)
{
    char buf[64 << 10];
    size_t n = pipe_read(&reports->pipe, buf, limit < sizeof buf ? limit : sizeof buf);
    for (size_t at = 0; at < n;) {
        const char *end = memchr(buf + at, '\n', n - at);
        size_t size = end != NULL ? (size_t)(end - (buf + at)) + 1 : n - at;
        reports_take(reports, buf + at, size, now_ns);
        at += size;
    }
    return n;
}

bool shim_reports_finish(struct shim_reports *reports)
{
    /* Neither rate nor size holds back the last word: the daemon must learn how the job ended. */
    if (reports->held > 0 && !reports_append(reports, reports->held_line, reports->held))
        return false;
    reports->held = 0;
    if (reports->used > 0 && !reports->skipping && reports->used < sizeof reports->line) {
        reports->line[reports->used] = '\n';
        if (!reports_append(reports, reports->line, reports->used + 1))
            return false;
    }
    reports->used = 0;
    return fdatasync(reports->file.fd) == 0;
}
