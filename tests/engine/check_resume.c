/* check_resume.c: kill -9 at any moment, then the same command again: the same final bits.
 *
 * Every call that changes a file is counted (the linker puts our functions around the system's) and
 * the n-th one is the process's last: a write is then cut in half, everything else not done. So
 * every moment that a kill can leave on the disk is tried, those inside a checkpoint included.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

static long calls_left = -1; /* before the kill; -1: none */

static bool last_call(void)
{
    return calls_left > 0 && --calls_left == 0;
}

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    if (last_call()) {
        if (__real_write(fd, data, size / 2) < 0)
            _exit(1);
        raise(SIGKILL);
    }
    return __real_write(fd, data, size);
}

#define KILLED_BEFORE(name, parameters, ...)                                                       \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        if (last_call())                                                                           \
            raise(SIGKILL);                                                                        \
        return __real_##name(__VA_ARGS__);                                                         \
    }

KILLED_BEFORE(fsync, (int fd), fd)
KILLED_BEFORE(rename, (const char *from, const char *to), from, to)
KILLED_BEFORE(mkdir, (const char *path, mode_t mode), path, mode)
KILLED_BEFORE(remove, (const char *path), path)
KILLED_BEFORE(unlink, (const char *path), path)
KILLED_BEFORE(ftruncate, (int fd, off_t size), fd, size)

/* Runs the job in a process of its own that is killed at its n-th call (0: never). Returns whether
 * it was; a job that fails otherwise fails the test. */
static bool run_killed(const char *output, long n, int64_t stop_after)
{
    static struct run_job run;
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        calls_left = n > 0 ? n : -1;
        run_job("{'train': {'epochs': 3}, 'checkpoint': {'every': '2 steps'}}", output, 2,
                stop_after, &run);
        if (run.rc != 0 && run.rc != ERR_CANCELLED)
            fprintf(stderr, "after %ld calls: %s\n", n, run.err.message);
        _exit(run.rc == 0 ? 0 : run.rc == ERR_CANCELLED ? 2 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg((WIFEXITED(status) && WEXITSTATUS(status) != 1) ||
                      (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL),
                  "killed at call %ld: status %#x", n, (unsigned)status);
    return WIFSIGNALED(status);
}

static const char *place(const char *name, long number)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s-%ld", checks_scratch(), name, number);
    return path;
}

/* The file without what a clock says in it. */
static size_t load(const char *dir, const char *name, char *to, size_t room)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is missing", path);
    size_t size = fread(to, 1, room - 1, file);
    fclose(file);
    to[size] = '\0';
    if (strcmp(name, "metrics.jsonl") != 0)
        return size;
    for (char *at = to; (at = strstr(at, "\"seconds\": ")) != NULL;) {
        at += strlen("\"seconds\": ");
        size_t digits = strcspn(at, ",");
        memmove(at, at + digits, strlen(at + digits) + 1);
    }
    return strlen(to);
}

static void ck_same(const char *a, const char *b, const char *name)
{
    static char of_a[1 << 16], of_b[1 << 16];
    size_t size_a = load(a, name, of_a, sizeof of_a), size_b = load(b, name, of_b, sizeof of_b);
    ck_assert_uint_gt(size_a, 0);
    ck_assert_msg(size_a == size_b && memcmp(of_a, of_b, size_a) == 0, "%s of %s differs:\n%s",
                  name, b, of_b);
}

static int count_entries(const char *dir)
{
    int n = 0;
    DIR *stream = opendir(dir);
    ck_assert_ptr_nonnull(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(stream);
    return n;
}

static void ck_same_run(const char *whole, const char *other)
{
    char checkpoints[1024];
    ck_same(whole, other, "weights.safetensors");
    ck_same(whole, other, "metrics.jsonl");
    ck_same(whole, other, "checkpoints/step-00000008/state.safetensors");
    ck_same(whole, other, "checkpoints/step-00000009/weights.safetensors");
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", other);
    ck_assert_int_eq(count_entries(checkpoints), 2);
}

/* Each turn of the loop test tries every STRIDE-th call, beginning with another one. */
enum { STRIDE = 13 };

START_TEST(killed_once_anywhere)
{
    const char *whole = place("whole", 0);
    long kills = 0;
    run_killed(whole, 0, 0);
    for (long n = 1 + 6 * _i;; n += STRIDE) {
        const char *output = place("killed", n);
        if (!run_killed(output, n, 0))
            break;
        kills++;
        run_killed(output, 0, 0);
        ck_same_run(whole, output);
    }
    ck_assert_int_gt(kills, 5);
}
END_TEST

/* Killed again and again: each attempt gets only a little farther. */
START_TEST(killed_again_and_again)
{
    const char *whole = place("whole", 0), *output = place("hunted", 0);
    int kills = 0;
    run_killed(whole, 0, 0);
    while (run_killed(output, 50, 0))
        ck_assert_int_lt(++kills, 100);
    ck_assert_int_gt(kills, 2);
    ck_same_run(whole, output);
}
END_TEST

/* Stopped, and killed while it writes the checkpoint of the stop. */
START_TEST(killed_while_stopping)
{
    const char *whole = place("whole", 0);
    run_killed(whole, 0, 0);
    for (long n = 40; n < 80; n += 10) {
        const char *output = place("stopped", n);
        run_killed(output, n, 3);
        run_killed(output, 0, 0);
        ck_same_run(whole, output);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("resume");
    TCase *tcase = checks_case(suite, "resume", 120);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, killed_once_anywhere, 0, 2);
    tcase_add_test(tcase, killed_again_and_again);
    tcase_add_test(tcase, killed_while_stopping);
    return checks_run(suite);
}
