/* file.c: see file.h. */
#define _GNU_SOURCE /* nftw */
#include "engine/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/limits.h"

static const char *kind_name(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a FIFO";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

/* O_NONBLOCK: the open of a FIFO that nobody else has open would wait for ever. */
static int open_regular(const char *path, int flags, int *ret_fd, int64_t *ret_bytes,
                        struct err *err)
{
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(err, errno, "cannot open %s", path);
    struct stat st;
    int rc = 0;
    if (fstat(fd, &st) < 0)
        rc = err_errno(err, errno, "cannot inspect %s", path);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(err, ERR_IO, "%s is %s, not a file", path, kind_name(st.st_mode));
    if (rc != 0) {
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    *ret_bytes = st.st_size;
    return 0;
}

int file_open(const char *path, int *ret_fd, int64_t *ret_bytes, struct err *err)
{
    return open_regular(path, O_RDONLY, ret_fd, ret_bytes, err);
}

int file_append(const char *path, int *ret_fd, struct err *err)
{
    int64_t bytes;
    return open_regular(path, O_RDWR | O_CREAT | O_APPEND, ret_fd, &bytes, err);
}

int file_create(const char *path, int *ret_fd, struct err *err)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(err, errno, "cannot create %s", path);
    *ret_fd = fd;
    return 0;
}

int file_map(const char *path, struct file_map *ret_map, struct err *err)
{
    int fd;
    int64_t bytes;
    int rc = file_open(path, &fd, &bytes, err);
    if (rc != 0)
        return rc;
    struct file_map map = {.bytes = (size_t)bytes};
    void *at = bytes > 0 ? mmap(NULL, map.bytes, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (at == MAP_FAILED)
        rc = errno == ENOMEM ? err_set(err, ERR_NOMEM, "no memory to map %s", path)
                             : err_errno(err, errno, "cannot map %s", path);
    close(fd);
    if (rc != 0)
        return rc;
    map.at = at;
    *ret_map = map;
    return 0;
}

void file_unmap(struct file_map *map)
{
    if (map->at != NULL)
        munmap((void *)map->at, map->bytes);
    *map = (struct file_map){.at = NULL};
}

int file_write(int fd, const void *data, size_t bytes, const char *path, struct err *err)
{
    const char *p = data;
    while (bytes > 0) {
        ssize_t n = write(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, errno, "cannot write %s", path);
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

int file_sync_dir(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "cannot open %s", path);
    int rc = fsync(fd) < 0 ? err_errno(err, errno, "cannot sync %s", path) : 0;
    close(fd);
    return rc;
}

int file_rename(const char *from, const char *to, const char *dir, struct err *err)
{
    if (rename(from, to) < 0)
        return err_errno(err, errno, "cannot rename %s to %s", from, to);
    return file_sync_dir(dir, err);
}

int file_path(char *ret_path, struct err *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(ret_path, LIMIT_PATH_BYTES, format, args);
    va_end(args);
    if (n < 0 || n >= LIMIT_PATH_BYTES)
        return err_set(err, ERR_IO, "a path is longer than %d bytes: %.64s…", LIMIT_PATH_BYTES - 1,
                       ret_path);
    return 0;
}

int file_replace(const char *dir, const char *name, const void *data, size_t bytes, struct err *err)
{
    char path[LIMIT_PATH_BYTES], fresh[LIMIT_PATH_BYTES];
    int rc = file_path(path, err, "%s/%s", dir, name);
    if (rc == 0)
        rc = file_path(fresh, err, "%s/.%s.new", dir, name);
    if (rc != 0)
        return rc;
    int fd = -1;
    rc = file_create(fresh, &fd, err);
    if (rc != 0)
        return rc;
    rc = file_write(fd, data, bytes, fresh, err);
    if (rc == 0 && fsync(fd) < 0)
        rc = err_errno(err, errno, "cannot sync %s", fresh);
    if (close(fd) < 0 && rc == 0)
        rc = err_errno(err, errno, "cannot write %s", fresh);
    if (rc == 0)
        rc = file_rename(fresh, path, dir, err);
    if (rc != 0)
        unlink(fresh);
    return rc;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int file_remove_tree(const char *path, struct err *err)
{
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
        return err_errno(err, errno, "cannot remove %s", path);
    return 0;
}
