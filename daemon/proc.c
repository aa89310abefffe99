/* proc.c: start times and the boot id, read from /proc. */
#include "daemon/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool proc_is_short(int errnum)
{
    return errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE;
}

/* The beginning of a small file as a string. */
static int read_text(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t n = read(fd, buf, size - 1);
    int errnum = n < 0 ? errno : 0;
    close(fd);
    if (n >= 0)
        buf[n] = '\0';
    return errnum;
}

int proc_start_time(pid_t pid, uint64_t *ret_ticks)
{
    char path[64], stat[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int errnum = read_text(path, stat, sizeof stat);
    if (errnum != 0)
        return errnum;
    /* The name, field 2, may hold blanks and parentheses: count from the last ')'. */
    const char *at = strrchr(stat, ')');
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    uint64_t ticks;
    if (at == NULL || sscanf(at, "%" SCNu64, &ticks) != 1)
        return EINVAL;
    *ret_ticks = ticks;
    return 0;
}

int proc_boot_id(char ret_id[static PROC_BOOT_ID_BYTES])
{
    char text[64];
    int errnum = read_text("/proc/sys/kernel/random/boot_id", text, sizeof text);
    if (errnum != 0)
        return errnum;
    text[strcspn(text, "\n")] = '\0';
    if (strlen(text) != PROC_BOOT_ID_BYTES - 1)
        return EINVAL;
    memcpy(ret_id, text, PROC_BOOT_ID_BYTES);
    return 0;
}
