/* log.c: one write(2) a line, so that lines of two threads never mix. */
#include "daemon/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct {
    const char *name;
    int priority; /* syslog's */
} levels[LOG_LEVEL_COUNT] = {
    [LOG_LEVEL_ERROR] = {"error", 3},
    [LOG_LEVEL_WARNING] = {"warning", 4},
    [LOG_LEVEL_INFO] = {"info", 6},
};

/* Does standard error go to journald itself (systemd.exec(5))? The variable alone says little: a
 * terminal of a session that systemd started may have inherited it. */
static bool to_journal(void)
{
    struct stat st;
    char is[64];
    const char *stream = getenv("JOURNAL_STREAM");
    if (stream == NULL || fstat(STDERR_FILENO, &st) != 0)
        return false;
    snprintf(is, sizeof is, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(is, stream) == 0;
}

static size_t clamp(int n, size_t room)
{
    return n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static size_t prefix(char *line, size_t size, enum log_level level)
{
    if (to_journal())
        return clamp(snprintf(line, size, "<%d>", levels[level].priority), size);
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    size_t used = strftime(line, size, "%F %T", &tm);
    return used + clamp(snprintf(line + used, size - used, ".%03ld %s: ", now.tv_nsec / 1000000,
                                 levels[level].name),
                        size - used);
}

void log_line(enum log_level level, const char *format, ...)
{
    char line[2048];
    size_t used = prefix(line, sizeof line - 1, level);
    va_list args;
    va_start(args, format);
    used +=
        clamp(vsnprintf(line + used, sizeof line - 1 - used, format, args), sizeof line - 1 - used);
    va_end(args);
    /* What a user wrote may be in it: a line stays a line. */
    for (size_t i = 0; i < used; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[used++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written; /* a log that cannot be written has nobody to tell */
}
