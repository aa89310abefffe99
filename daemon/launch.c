/* launch.c: a job's directory, its shim's command line, and the start.
 *
 * Everything that can fail does so before the shim exists; what the directory holds then is cleaned
 * by the next attempt. The lock is taken first and is handed to the shim by inheritance: there is
 * no moment in which a living shim does not hold it.
 */
#define _GNU_SOURCE
#include "daemon/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The bytes behind a copied spec: vectors first, for their alignment, then texts. */
struct block {
    const char **vector;
    char *text;
};

static const char *block_text(struct block *block, const char *text, size_t size)
{
    char *copy = memcpy(block->text, text, size);
    block->text += size;
    return copy;
}

static const char *const *block_strings(struct block *block, const char *const *strings)
{
    const char **copy = block->vector;
    if (strings == NULL)
        return NULL;
    for (; *strings != NULL; strings++)
        *block->vector++ = block_text(block, *strings, strlen(*strings) + 1);
    *block->vector++ = NULL;
    return copy;
}

static void measure(const char *const *strings, size_t *n, size_t *bytes)
{
    if (strings == NULL)
        return;
    for (; *strings != NULL; strings++) {
        *n += 1;
        *bytes += strlen(*strings) + 1;
    }
    *n += 1;
}

struct runner_spec *launch_copy(const struct runner_spec *spec)
{
    size_t n = 0;
    size_t bytes = strlen(spec->dir) + 1 + strlen(spec->cwd) + 1 + spec->document_size;
    measure(spec->argv, &n, &bytes);
    measure(spec->env, &n, &bytes);
    struct runner_spec *copy = malloc(sizeof *copy + n * sizeof(char *) + bytes);
    if (copy == NULL)
        return NULL;
    struct block block = {.vector = (const char **)(copy + 1)};
    block.text = (char *)(block.vector + n);
    *copy = *spec;
    copy->dir = block_text(&block, spec->dir, strlen(spec->dir) + 1);
    copy->cwd = block_text(&block, spec->cwd, strlen(spec->cwd) + 1);
    copy->document = block_text(&block, spec->document, spec->document_size);
    copy->argv = block_strings(&block, spec->argv);
    copy->env = block_strings(&block, spec->env);
    return copy;
}

/* A new directory's name is made durable too: what the shim syncs into it (that the job runs, how
 * it ended) must not be lost with it. */
static int make_directory(const struct runner_spec *spec, struct err *err)
{
    char parent[4096];
    if (mkdir(spec->dir, 0700) < 0)
        return errno == EEXIST ? 0 : err_errno(err, errno, "%s", spec->dir);
    snprintf(parent, sizeof parent, "%s", spec->dir);
    *strrchr(parent, '/') = '\0';
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int errnum = fd < 0 || fsync(fd) < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return errnum == 0 ? 0 : err_errno(err, errnum, "%s", parent);
}

/* Opens and locks DIR/shim.lock. */
static int take_lock(int dir_fd, const struct runner_spec *spec, int *ret_fd, struct err *err)
{
    int fd = openat(dir_fd, "shim.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(err, errno, "%s/shim.lock", spec->dir);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int errnum = errno;
        close(fd);
        if (errnum == EWOULDBLOCK)
            return err_set(err, ERR_BUSY, "a process of job %" PRId64 " still runs", spec->id);
        return err_errno(err, errnum, "%s/shim.lock", spec->dir);
    }
    *ret_fd = fd;
    return 0;
}

static int remove_leftovers(int dir_fd, const struct runner_spec *spec, struct err *err)
{
    static const char *const names[] = {"shim.json",       "worker.json",  "exit.json",
                                        "report.jsonl",    "log",          "shim.json.new",
                                        "worker.json.new", "exit.json.new"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (unlinkat(dir_fd, names[i], 0) < 0 && errno != ENOENT)
            return err_errno(err, errno, "%s/%s", spec->dir, names[i]);
    }
    return 0;
}

static int write_document(int dir_fd, const struct runner_spec *spec, struct err *err)
{
    int fd =
        openat(dir_fd, "job.json.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(err, errno, "%s/job.json.new", spec->dir);
    size_t done = 0;
    int errnum = 0;
    while (done < spec->document_size && errnum == 0) {
        ssize_t n = write(fd, spec->document + done, spec->document_size - done);
        if (n < 0 && errno != EINTR)
            errnum = errno;
        done += n > 0 ? (size_t)n : 0;
    }
    if (errnum == 0 && fsync(fd) < 0)
        errnum = errno;
    if (close(fd) < 0 && errnum == 0)
        errnum = errno;
    if (errnum == 0 && renameat(dir_fd, "job.json.new", dir_fd, "job.json") < 0)
        errnum = errno;
    return errnum == 0 ? 0 : err_errno(err, errnum, "%s/job.json", spec->dir);
}

/* The shim's arguments, in one allocation each and all freed together. */
struct arguments {
    char **argv;
    size_t n, room;
    bool failed;
};

static void add(struct arguments *arguments, const char *text)
{
    if (arguments->n + 1 >= arguments->room) {
        size_t room = arguments->room == 0 ? 32 : 2 * arguments->room;
        char **argv = realloc(arguments->argv, room * sizeof *argv);
        if (argv == NULL) {
            arguments->failed = true;
            return;
        }
        arguments->argv = argv;
        arguments->room = room;
    }
    char *copy = strdup(text);
    arguments->failed |= copy == NULL;
    arguments->argv[arguments->n] = copy;
    arguments->n += copy != NULL;
    arguments->argv[arguments->n] = NULL;
}

static void add_number(struct arguments *arguments, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    add(arguments, name);
    add(arguments, text);
}

/* The name for initgroups; a uid without an account has no more groups than its gid. */
static void add_user(struct arguments *arguments, uid_t uid)
{
    struct passwd entry, *found = NULL;
    char buf[4096];
    if (getpwuid_r(uid, &entry, buf, sizeof buf, &found) == 0 && found != NULL) {
        add(arguments, "--user");
        add(arguments, found->pw_name);
    }
}

static void arguments_free(struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->n; i++)
        free(arguments->argv[i]);
    free(arguments->argv);
}

static int arguments_build(struct arguments *arguments, const char *shim,
                           const struct runner_spec *spec, struct err *err)
{
    add(arguments, shim);
    add(arguments, "--dir");
    add(arguments, spec->dir);
    add_number(arguments, "--id", spec->id);
    add(arguments, "--cwd");
    add(arguments, spec->cwd);
    add_number(arguments, "--grace", spec->grace_s);
    if (spec->drop) {
        add_number(arguments, "--uid", spec->uid);
        add_number(arguments, "--gid", spec->gid);
        add_user(arguments, spec->uid);
    }
    for (const char *const *env = spec->env; env != NULL && *env != NULL; env++) {
        add(arguments, "--env");
        add(arguments, *env);
    }
    add(arguments, "--");
    for (const char *const *arg = spec->argv; *arg != NULL; arg++)
        add(arguments, *arg);
    return arguments->failed ? err_set(err, ERR_NOMEM, "out of memory") : 0;
}

/* posix_spawn's own failures are numbers, not errno. */
static int start(const struct runner_spec *spec, char *const *argv, int lock_fd, pid_t *ret_pid)
{
    char log[4096 + 8];
    char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t all, term;
    snprintf(log, sizeof log, "%s/log", spec->dir);
    sigfillset(&all);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    int errnum = posix_spawn_file_actions_init(&actions);
    if (errnum != 0)
        return errnum;
    errnum = posix_spawnattr_init(&attr);
    if (errnum != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return errnum;
    }
    posix_spawnattr_setflags(&attr,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &term);
    if ((errnum = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)) == 0 &&
        (errnum = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)) == 0 &&
        (errnum = posix_spawn_file_actions_addopen(
             &actions, 2, log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600)) == 0 &&
        (errnum = posix_spawn_file_actions_adddup2(&actions, lock_fd, 3)) == 0)
        errnum = posix_spawn(ret_pid, argv[0], &actions, &attr, argv, environment);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return errnum;
}

int launch_shim(const char *shim, const struct runner_spec *spec, struct launch *ret_launch,
                struct err *err)
{
    struct arguments arguments = {NULL, 0, 0, false};
    int dir_fd = -1, lock_fd = -1;
    pid_t pid;
    int rc = make_directory(spec, err);
    if (rc != 0)
        goto out;
    dir_fd = open(spec->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir_fd < 0) {
        rc = err_errno(err, errno, "%s", spec->dir);
        goto out;
    }
    if ((rc = take_lock(dir_fd, spec, &lock_fd, err)) != 0 ||
        (rc = remove_leftovers(dir_fd, spec, err)) != 0 ||
        (rc = write_document(dir_fd, spec, err)) != 0 ||
        (rc = arguments_build(&arguments, shim, spec, err)) != 0)
        goto out;
    int errnum = start(spec, arguments.argv, lock_fd, &pid);
    if (errnum != 0) {
        rc = err_errno(err, errnum, "starting %s", shim);
        goto out;
    }
    ret_launch->pid = pid;
    ret_launch->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
out:
    arguments_free(&arguments);
    if (lock_fd >= 0)
        close(lock_fd);
    if (dir_fd >= 0)
        close(dir_fd);
    return rc;
}
