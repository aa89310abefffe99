/* shim_record.c: JSON written by hand (the shim needs no more of it) and put in place by rename. */
#include "daemon/shim_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/proc.h"

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

static int record_put(int dir_fd, const char *name, const char *text)
{
    char fresh[64];
    snprintf(fresh, sizeof fresh, "%s.new", name);
    int fd = openat(dir_fd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    int errnum = write_all(fd, text, strlen(text));
    if (errnum == 0 && fsync(fd) < 0)
        errnum = errno;
    if (close(fd) < 0 && errnum == 0)
        errnum = errno;
    if (errnum == 0 && renameat(dir_fd, fresh, dir_fd, name) < 0)
        errnum = errno;
    if (errnum != 0)
        unlinkat(dir_fd, fresh, 0);
    else if (fsync(dir_fd) < 0)
        errnum = errno;
    return errnum;
}

int shim_record_shim(int dir_fd)
{
    char boot_id[PROC_BOOT_ID_BYTES], text[256];
    uint64_t ticks;
    int errnum = proc_start_time(getpid(), &ticks);
    if (errnum == 0)
        errnum = proc_boot_id(boot_id);
    if (errnum != 0)
        return errnum;
    snprintf(text, sizeof text, "{\"pid\": %d, \"start_time\": %" PRIu64 ", \"boot_id\": \"%s\"}\n",
             (int)getpid(), ticks, boot_id);
    return record_put(dir_fd, "shim.json", text);
}

int shim_record_worker(int dir_fd, pid_t pid)
{
    char text[128];
    uint64_t ticks;
    int errnum = proc_start_time(pid, &ticks);
    if (errnum != 0)
        return errnum;
    snprintf(text, sizeof text, "{\"pid\": %d, \"start_time\": %" PRIu64 "}\n", (int)pid, ticks);
    return record_put(dir_fd, "worker.json", text);
}

/* Bytes of the UTF-8 sequence that begins here, 0 if there is none (RFC 3629, table in section 4).
 */
static size_t utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high;
        size_t length;
    } rows[] = {
        {0x20, 0x7f, 0, 0xff, 1},    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (s[0] < rows[i].first_low || s[0] > rows[i].first_high)
            continue;
        if (rows[i].length > 1 && (s[1] < rows[i].second_low || s[1] > rows[i].second_high))
            return 0;
        for (size_t k = 2; k < rows[i].length; k++) {
            if ((s[k] & 0xc0) != 0x80)
                return 0;
        }
        return rows[i].length;
    }
    return 0;
}

/* A JSON string without its quotes; `size` is six times the longest text. */
static void quote(const char *text, char *buf, size_t size)
{
    size_t used = 0;
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0' && used + 7 < size;) {
        size_t n = utf8_length(s);
        if (*s < 0x20) {
            used += (size_t)snprintf(buf + used, 7, "\\u%04x", *s++);
            continue;
        }
        if (*s == '"' || *s == '\\')
            buf[used++] = '\\';
        if (n == 0)
            buf[used++] = '?';
        else
            memcpy(buf + used, s, n);
        used += n;
        s += n > 0 ? n : 1;
    }
    buf[used] = '\0';
}

static const char *number_or_null(bool given, int value, char buf[static 16])
{
    snprintf(buf, 16, "%d", value);
    return given ? buf : "null";
}

int shim_record_exit(int dir_fd, const struct shim_exit *record)
{
    char message[6 * sizeof record->message + 8], status[16], signal[16];
    char text[sizeof message + 256];
    quote(record->message, message, sizeof message);
    snprintf(text, sizeof text,
             "{\"status\": %s, \"signal\": %s, \"reason\": \"%s\", \"message\": \"%s\", "
             "\"ended_ns\": %" PRId64 ", \"oom_kills\": %" PRId64 "}\n",
             number_or_null(record->status >= 0, record->status, status),
             number_or_null(record->signal > 0, record->signal, signal), record->reason, message,
             record->ended_ns, record->oom_kills);
    return record_put(dir_fd, "exit.json", text);
}
