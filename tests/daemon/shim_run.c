#define _GNU_SOURCE
#include "tests/daemon/shim_run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/checks.h"

const char *build_path(const char *program, char buf[static 4096])
{
    ck_assert_msg(realpath(program, buf) != NULL, "%s: %s (run from the top of the build)", program,
                  strerror(errno));
    return buf;
}

void shim_run_init(struct shim_run *run, const char *document)
{
    snprintf(run->dir, sizeof run->dir - 16, "%s/job", checks_scratch());
    ck_assert_int_eq(mkdir(run->dir, 0700), 0);
    char path[sizeof run->dir + 16];
    snprintf(path, sizeof path, "%s/job.json", run->dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(document, file);
    ck_assert_int_eq(fclose(file), 0);
}

static size_t append(const char **argv, size_t n, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++)
        argv[n++] = *list;
    return n;
}

void shim_run_start(struct shim_run *run, const char *const *options, const char *const *program)
{
    static char shim[4096];
    const char *argv[64] = {build_path("daemon/traind-shim", shim)};
    const char *const always[] = {"--dir", run->dir, "--id", "7", "--cwd", "/", NULL};
    size_t n = append(argv, 1, always);
    n = append(argv, n, options);
    argv[n++] = "--";
    append(argv, n, program);
    run->pid = fork();
    ck_assert_int_ge(run->pid, 0);
    if (run->pid == 0) {
        if (!run->outlives)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(shim, (char *const *)argv);
        _exit(125);
    }
}

void shim_run_sh(struct shim_run *run, const char *const *options, const char *script)
{
    const char *const program[] = {"sh", "-c", script, NULL};
    shim_run_start(run, options, program);
}

void process_await_end(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        ck_assert_int_eq(errno, ESRCH);
        return;
    }
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    ck_assert_msg(poll(&ended, 1, SHIM_RUN_BOUND_MS) == 1, "process %d does not end", (int)pid);
    close(fd);
}

int shim_run_wait(struct shim_run *run)
{
    int status;
    process_await_end(run->pid);
    ck_assert_int_eq(waitpid(run->pid, &status, 0), run->pid);
    ck_assert_msg(WIFEXITED(status), "the shim died of signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static char *read_file(const char *path, size_t *ret_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return NULL;
    char *text = malloc((size_t)st.st_size + 1);
    ck_assert_ptr_nonnull(text);
    ssize_t n = read(fd, text, (size_t)st.st_size);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    close(fd);
    if (ret_size != NULL)
        *ret_size = (size_t)n;
    return text;
}

char *shim_run_file(const struct shim_run *run, const char *name, size_t *ret_size)
{
    char path[sizeof run->dir + 256];
    snprintf(path, sizeof path, "%s/%s", run->dir, name);
    char *text = read_file(path, ret_size);
    ck_assert_msg(text != NULL, "%s: %s", path, strerror(errno));
    return text;
}

void shim_run_await(const struct shim_run *run, const char *name, const char *text)
{
    char path[sizeof run->dir + 256], events[4096];
    snprintf(path, sizeof path, "%s/%s", run->dir, name);
    int fd = inotify_init1(IN_CLOEXEC);
    ck_assert_int_ge(inotify_add_watch(fd, run->dir, IN_CREATE | IN_MODIFY | IN_MOVED_TO), 0);
    for (bool found = false; !found;) {
        char *now = read_file(path, NULL);
        found = now != NULL && strstr(now, text) != NULL;
        free(now);
        struct pollfd changed = {.fd = fd, .events = POLLIN};
        if (!found) {
            ck_assert_msg(poll(&changed, 1, SHIM_RUN_BOUND_MS) == 1, "no '%s' in %s", text, name);
            ck_assert_int_gt(read(fd, events, sizeof events), 0);
        }
    }
    close(fd);
}

json_t *shim_run_exit(const struct shim_run *run)
{
    size_t size;
    char *text = shim_run_file(run, "exit.json", &size);
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "exit.json: %s: %s", error.text, text);
    free(text);
    return root;
}

static int integer_or_null(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    ck_assert_msg(json_is_null(value) || json_is_integer(value), "%s", key);
    return json_is_null(value) ? -1 : (int)json_integer_value(value);
}

char *shim_run_expect(const struct shim_run *run, const char *reason, int status, int sig)
{
    json_t *root = shim_run_exit(run);
    ck_assert_str_eq(json_string_value(json_object_get(root, "reason")), reason);
    ck_assert_int_eq(integer_or_null(root, "status"), status);
    ck_assert_int_eq(integer_or_null(root, "signal"), sig);
    ck_assert_int_gt(json_integer_value(json_object_get(root, "ended_ns")), 0);
    const char *message = json_string_value(json_object_get(root, "message"));
    ck_assert_str_ne(message, "");
    char *copy = strdup(message);
    json_decref(root);
    return copy;
}
