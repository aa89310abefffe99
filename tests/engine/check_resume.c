/* check_resume.c: kill -9 at any moment, then the same command again: the same final bits.
 *
 * Every call that changes a file is counted (the linker puts our functions around the system's) and
 * the n-th one is the process's last: a write is then cut in half, everything else not done. So
 * every moment that a kill can leave on the disk is tried, those inside a checkpoint included. So
 * are the locks that the engine's threads take, at which it dies in the midst of a step.
 *
 * TRAIND_KILLS: how often each of the randomly killed jobs is killed, 8 by default.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/rng.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

enum { CALLS, LOCKS, N_MOMENTS };

struct moments { /* shared with the process that is killed */
    atomic_long seen[N_MOMENTS];
    atomic_long left[N_MOMENTS]; /* before the kill; 0 or less: none */
};
static struct moments *moments;
static bool mortal; /* this process is to be killed */

static bool last_moment(int kind)
{
    if (!mortal)
        return false;
    moments->seen[kind]++;
    return atomic_fetch_sub(&moments->left[kind], 1) == 1;
}

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    if (last_moment(CALLS)) {
        if (__real_write(fd, data, size / 2) < 0)
            _exit(1);
        raise(SIGKILL);
    }
    return __real_write(fd, data, size);
}

#define KILLED_BEFORE(kind, name, parameters, ...)                                                 \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        if (last_moment(kind))                                                                     \
            raise(SIGKILL);                                                                        \
        return __real_##name(__VA_ARGS__);                                                         \
    }

KILLED_BEFORE(CALLS, fsync, (int fd), fd)
KILLED_BEFORE(CALLS, rename, (const char *from, const char *to), from, to)
KILLED_BEFORE(CALLS, mkdir, (const char *path, mode_t mode), path, mode)
KILLED_BEFORE(CALLS, remove, (const char *path), path)
KILLED_BEFORE(CALLS, unlink, (const char *path), path)
KILLED_BEFORE(CALLS, ftruncate, (int fd, off_t size), fd, size)
KILLED_BEFORE(LOCKS, pthread_mutex_lock, (pthread_mutex_t * mutex), mutex)

/* An optimizer with all the state that there is, a rate that depends on the step. */
#define PATCH                                                                                      \
    "{'train': {'epochs': 3, 'clip_grad_norm': 1}, 'checkpoint': {'every': '2 steps'},"            \
    " 'optimizer': {'type': 'RMSprop', 'lr': 0.01, 'centered': true},"                             \
    " 'schedule': {'type': 'CosineAnnealingLR', 'T_max': 9, 'warmup_steps': 3}}"

/* A job, how many devices it has and steps it makes. */
struct variant {
    const char *patch;
    int n_devices;
    int steps;
};
static const struct variant usual = {PATCH, 2, 9};

/* Runs the job in a process of its own that is killed at its n-th moment of a kind (0: never).
 * Returns whether it was; a job that fails otherwise fails the test. */
static bool run_variant(const struct variant *variant, const char *output, int kind, long n,
                        int64_t stop_after)
{
    static struct run_job run;
    fflush(NULL);
    if (moments == NULL)
        moments =
            mmap(NULL, sizeof *moments, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(moments, MAP_FAILED);
    memset(moments, 0, sizeof *moments);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        moments->left[kind] = n;
        mortal = true;
        run_job(variant->patch, output, variant->n_devices, stop_after, &run);
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

static bool run_killed(const char *output, long n, int64_t stop_after)
{
    return run_variant(&usual, output, CALLS, n, stop_after);
}

struct place {
    char path[512];
};

static struct place place(const char *name, long number)
{
    struct place place;
    snprintf(place.path, sizeof place.path, "%s/%s-%ld", checks_scratch(), name, number);
    return place;
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

static void ck_same_variant(const struct variant *variant, const char *whole, const char *other)
{
    char checkpoints[1024], file[64];
    ck_same(whole, other, "weights.safetensors");
    ck_same(whole, other, "metrics.jsonl");
    snprintf(file, sizeof file, "checkpoints/step-%08d/state.safetensors",
             (variant->steps - 1) / 2 * 2);
    ck_same(whole, other, file);
    snprintf(file, sizeof file, "checkpoints/step-%08d/weights.safetensors", variant->steps);
    ck_same(whole, other, file);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", other);
    ck_assert_int_eq(count_entries(checkpoints), 2);
}

static void ck_same_run(const char *whole, const char *other)
{
    ck_same_variant(&usual, whole, other);
}

/* Each turn of the loop test tries every STRIDE-th call, beginning with another one. */
enum { STRIDE = 13 };

START_TEST(killed_once_anywhere)
{
    const struct place whole = place("whole", 0);
    long kills = 0;
    run_killed(whole.path, 0, 0);
    for (long n = 1 + 6 * _i;; n += STRIDE) {
        const struct place output = place("killed", n);
        if (!run_killed(output.path, n, 0))
            break;
        kills++;
        run_killed(output.path, 0, 0);
        ck_same_run(whole.path, output.path);
    }
    ck_assert_int_gt(kills, 5);
}
END_TEST

/* Killed again and again: each attempt gets only a little farther. */
START_TEST(killed_again_and_again)
{
    const struct place whole = place("whole", 0), output = place("hunted", 0);
    int kills = 0;
    run_killed(whole.path, 0, 0);
    while (run_killed(output.path, 80, 0))
        ck_assert_int_lt(++kills, 100);
    ck_assert_int_gt(kills, 2);
    ck_same_run(whole.path, output.path);
}
END_TEST

/* Stopped, and killed while it writes the checkpoint of the stop. */
START_TEST(killed_while_stopping)
{
    const struct place whole = place("whole", 0);
    run_killed(whole.path, 0, 0);
    for (long n = 40; n < 120; n += 10) {
        const struct place output = place("stopped", n);
        run_killed(output.path, n, 3);
        run_killed(output.path, 0, 0);
        ck_same_run(whole.path, output.path);
    }
}
END_TEST

/* Shuffling, dropout, BatchNorm (the base job's), Adam and windows of two batches, of which an
 * epoch's second has but one. */
#define ALL_ON_OPEN                                                                                \
    "{'train': {'epochs': 6, 'accumulate': 2, 'clip_grad_norm': 1},"                               \
    " 'checkpoint': {'every': '2 steps'},"                                                         \
    " 'optimizer': {'type': 'Adam', 'momentum': null, 'amsgrad': true},"                           \
    " 'schedule': {'type': 'CosineAnnealingLR', 'T_max': 9, 'warmup_steps': 3}"
#define ALL_ON ALL_ON_OPEN "}"
#define IN_STAGES(parallel) ALL_ON_OPEN ", 'parallel': {'mode': 'stages', " parallel "}}"

static const struct variant hunted[] = {
    {ALL_ON, 1, 12},
    {ALL_ON, 2, 12},
    {IN_STAGES("'devices': 3, 'split': ['2', 'b'], 'split_size': 4"), 3, 12},
    {IN_STAGES("'devices': 4, 'replicas': 2, 'split': ['bn'], 'microbatches': 2,"
               " 'schedule': '1f1b'"),
     4, 12},
};

static uint32_t draw(uint64_t number)
{
    uint32_t words[4];
    rng_block(rng_key(5, RNG_DATA, 0), 0, number, words);
    return words[0];
}

/* Killed at random moments, again and again; when it came to its end, a new one is begun. */
START_TEST(killed_at_random)
{
    const struct variant *variant = &hunted[_i];
    const struct place whole = place("whole", 0);
    const char *wanted = getenv("TRAIND_KILLS");
    long most[N_MOMENTS], kills = wanted != NULL ? atol(wanted) : 8, output = 0;
    ck_assert_int_gt(kills, 0);
    run_variant(variant, whole.path, CALLS, 0, 0);
    for (int kind = 0; kind < N_MOMENTS; kind++)
        most[kind] = moments->seen[kind];
    for (uint64_t turn = 0; kills > 0; turn++) {
        int kind = (int)(draw(2 * turn) % N_MOMENTS);
        long n = 1 + (long)draw(2 * turn + 1) % most[kind];
        const struct place here = place("hunted", output);
        if (run_variant(variant, here.path, kind, n, 0)) {
            kills--;
            continue;
        }
        ck_same_variant(variant, whole.path, here.path);
        output++;
    }
    const struct place here = place("hunted", output);
    ck_assert(!run_variant(variant, here.path, CALLS, 0, 0));
    ck_same_variant(variant, whole.path, here.path);
}
END_TEST

/* The worker as the shim starts it. Kills it at its `reports`-th report (0: never), whatever it is
 * doing then; returns whether it was killed. */
static bool run_worker(const char *document, const char *output, int reports)
{
    int fds[2], status;
    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        close(fds[1]);
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        execl("engine/worker/traind-worker", "traind-worker", "run", document, "--json", "--output",
              output, "--cpu-devices", "2", "--devices", "cpu:0,cpu:1", (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    FILE *stream = fdopen(fds[0], "r");
    for (int c; (c = fgetc(stream)) != EOF;)
        if (c == '\n' && --reports == 0)
            kill(pid, SIGKILL);
    fclose(stream);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "the worker exited with %d",
                  WEXITSTATUS(status));
    return WIFSIGNALED(status);
}

START_TEST(a_killed_worker)
{
    const struct place whole = place("whole", 0), document = place("job", 0);
    FILE *file = fopen(document.path, "w");
    struct job *job = run_job_parse(PATCH);
    json_t *root = job_dump(job);
    ck_assert_int_eq(json_object_del(root, "parallel"), 0);
    ck_assert_int_eq(json_dumpf(root, file, 0), 0);
    fclose(file);
    json_decref(root);
    job_free(job);
    ck_assert(!run_worker(document.path, whole.path, 0));
    for (int reports = 1; reports < 11; reports += 3) {
        const struct place output = place("worker", reports);
        run_worker(document.path, output.path, reports);
        ck_assert(!run_worker(document.path, output.path, 0));
        ck_same_run(whole.path, output.path);
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
    tcase_add_loop_test(tcase, killed_at_random, 0, (int)(sizeof hunted / sizeof hunted[0]));
    tcase_add_test(tcase, a_killed_worker);
    return checks_run(suite);
}
