/* evidence.c: reads shim.lock, shim.json and exit.json.
 *
 * The lock decides whether a shim lives; shim.json only tells which process it is. A pidfd is
 * opened first and the start time compared afterwards: what the descriptor names cannot change any
 * more.
 */
#define _GNU_SOURCE
#include "daemon/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/proc.h"
#include "proto/json.h"

enum { EVIDENCE_BYTES = 16 << 10 }; /* no record of the shim is larger */

static int open_in(const char *dir, const char *name, int flags)
{
    char path[4096 + 32];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW);
}

static int load(const char *dir, const char *name, json_t **ret_root, struct err *err)
{
    char text[EVIDENCE_BYTES];
    int fd = open_in(dir, name, O_RDONLY);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "%s/%s does not exist", dir, name);
    if (fd < 0 && proc_is_short(errno))
        return err_set(err, ERR_NOMEM, "%s/%s: %s", dir, name, strerror(errno));
    if (fd < 0)
        return err_errno(err, errno, "%s/%s", dir, name);
    ssize_t n = read(fd, text, sizeof text);
    int errnum = errno;
    close(fd);
    if (n < 0)
        return err_errno(err, errnum, "%s/%s", dir, name);
    if (json_load(text, (size_t)n, ERR_IO, ret_root, err) != 0)
        return err_context(err, "%s/%s", dir, name);
    return 0;
}

static bool get_integer(const json_t *root, const char *key, int64_t low, int64_t high,
                        int64_t *ret_value)
{
    const json_t *value = json_object_get(root, key);
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < low || number > high)
        return false;
    *ret_value = number;
    return true;
}

/* An integer, or null for `absent`. */
static bool get_optional(const json_t *root, const char *key, int64_t high, int absent, int *ret)
{
    int64_t value = absent;
    if (!json_is_null(json_object_get(root, key)) && !get_integer(root, key, 0, high, &value))
        return false;
    *ret = (int)value;
    return true;
}

static bool get_reason(const json_t *root, enum runner_reason *ret_reason)
{
    static const char *const names[] = {
#define X(name, text) text,
        RUNNER_REASONS(X)
#undef X
    };
    const char *reason = json_string_value(json_object_get(root, "reason"));
    for (size_t i = 0; reason != NULL && i < RUNNER_REASON_COUNT; i++) {
        if (strcmp(reason, names[i]) == 0) {
            *ret_reason = (enum runner_reason)i;
            return true;
        }
    }
    return false;
}

int evidence_exit(const char *dir, struct runner_exit *ret_exit, struct err *err)
{
    json_t *root;
    int rc = load(dir, "exit.json", &root, err);
    if (rc != 0)
        return rc;
    struct runner_exit found;
    memset(&found, 0, sizeof found);
    const char *message = json_string_value(json_object_get(root, "message"));
    if (get_optional(root, "status", 255, -1, &found.status) &&
        get_optional(root, "signal", 255, 0, &found.signal) && get_reason(root, &found.reason) &&
        get_integer(root, "ended_ns", 0, INT64_MAX, &found.ended_ns) &&
        get_integer(root, "oom_kills", 0, INT64_MAX, &found.oom_kills) && message != NULL) {
        snprintf(found.message, sizeof found.message, "%s", message);
        *ret_exit = found;
    } else {
        rc = err_set(err, ERR_IO, "%s/exit.json is not an exit record", dir);
    }
    json_decref(root);
    return rc;
}

bool evidence_ran(const char *dir)
{
    char path[4096 + 32];
    snprintf(path, sizeof path, "%s/shim.json", dir);
    return access(path, F_OK) == 0;
}

/* Without the file no shim was ever started. An unreadable lock counts as held: better to wait than
 * to run a job twice. */
static bool lock_is_free(const char *dir)
{
    int fd = open_in(dir, "shim.lock", O_RDWR);
    if (fd < 0)
        return errno == ENOENT;
    bool is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (is_free) /* said aloud: a child that is just being started may have a copy of `fd` */
        flock(fd, LOCK_UN);
    close(fd);
    return is_free;
}

/* -1: shim.json is absent, or its process is not the one it was. */
static int open_shim(const char *dir)
{
    struct err ignored;
    json_t *root;
    char boot_id[PROC_BOOT_ID_BYTES];
    int64_t pid, start_time;
    uint64_t ticks;
    if (load(dir, "shim.json", &root, &ignored) != 0)
        return -1;
    const char *told = json_string_value(json_object_get(root, "boot_id"));
    int pidfd = -1;
    if (told != NULL && proc_boot_id(boot_id) == 0 && strcmp(told, boot_id) == 0 &&
        get_integer(root, "pid", 1, INT32_MAX, &pid) &&
        get_integer(root, "start_time", 0, INT64_MAX, &start_time))
        pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    json_decref(root);
    if (pidfd >= 0 && (proc_start_time((pid_t)pid, &ticks) != 0 || ticks != (uint64_t)start_time)) {
        close(pidfd);
        return -1;
    }
    return pidfd;
}

enum evidence_shim evidence_shim(const char *dir, int *ret_pidfd)
{
    if (lock_is_free(dir))
        return EVIDENCE_NONE;
    int pidfd = open_shim(dir);
    if (pidfd < 0)
        return EVIDENCE_HIDDEN;
    *ret_pidfd = pidfd;
    return EVIDENCE_ALIVE;
}
