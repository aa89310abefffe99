/* statedir.c: see statedir.h. */
#include "daemon/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_LIMIT_MS = 2000, LOCK_TRIES = 100 };

static int make(const char *path, mode_t mode, struct err *err)
{
    if (mkdir(path, mode) == 0 || errno == EEXIST)
        return 0;
    return err_errno(err, errno, "%s", path);
}

int statedir_make_parents(const char *path, struct err *err)
{
    char part[PATH_MAX];
    int rc = 0;
    if (strlen(path) >= sizeof part)
        return err_set(err, ERR_IO, "the path is too long: %.200s…", path);
    for (const char *slash = strchr(path + 1, '/'); rc == 0 && slash != NULL;
         slash = strchr(slash + 1, '/')) {
        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        rc = make(part, 0755, err);
    }
    return rc;
}

static int check_owned(const char *path, struct err *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return err_errno(err, errno, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_IO, "%s: is %s; it has to be a directory", path,
                       S_ISLNK(st.st_mode) ? "a symbolic link" : "not a directory");
    if (st.st_uid != geteuid())
        return err_set(err, ERR_IO, "%s: belongs to uid %u; it has to be of uid %u", path,
                       (unsigned)st.st_uid, (unsigned)geteuid());
    if ((st.st_mode & 077) != 0)
        return err_set(err, ERR_IO, "%s: others can enter it (mode %o; it has to be 700)", path,
                       st.st_mode & 07777);
    return 0;
}

/* A daemon that was killed while it started a shim leaves its descriptors to that child until the
 * exec, so the lock may outlive it by a moment. */
static int lock_soon(int fd)
{
    const struct timespec pause = {.tv_nsec = LOCK_LIMIT_MS * 1000000L / LOCK_TRIES};
    for (int i = 1; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == LOCK_TRIES)
            return -1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

static int take_lock(const char *state, int *ret_fd, struct err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lock", state);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, errno, "%s", path);
    if (lock_soon(fd) == 0) {
        *ret_fd = fd;
        return 0;
    }
    int rc = errno == EWOULDBLOCK ? err_set(err, ERR_BUSY, "%s: another traind is using it", state)
                                  : err_errno(err, errno, "%s", path);
    close(fd);
    return rc;
}

int statedir_open(const char *path, int *ret_fd, struct err *err)
{
    char jobs[PATH_MAX];
    if ((size_t)snprintf(jobs, sizeof jobs, "%s/jobs", path) >= sizeof jobs - 64)
        return err_set(err, ERR_IO, "the path is too long: %.200s…", path);
    int rc = statedir_make_parents(path, err);
    if (rc == 0)
        rc = make(path, 0700, err);
    if (rc == 0)
        rc = check_owned(path, err);
    if (rc == 0)
        rc = make(jobs, 0700, err);
    if (rc == 0)
        rc = check_owned(jobs, err);
    return rc != 0 ? rc : take_lock(path, ret_fd, err);
}

void statedir_close(int fd)
{
    if (fd < 0)
        return;
    flock(fd, LOCK_UN); /* for a child that is just being started and has a copy */
    close(fd);
}

const char *statedir_job(const char *state, int64_t id, const char *file, char *buf, size_t size)
{
    snprintf(buf, size, "%s/jobs/%" PRId64 "%s%s", state, id, file != NULL ? "/" : "",
             file != NULL ? file : "");
    return buf;
}
