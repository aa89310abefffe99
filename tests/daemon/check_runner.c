/* check_runner.c: the runner on libuv with real shims: started, stopped, followed, adopted. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/launch.h"
#include "tests/daemon/runner_run.h"
#include "tests/daemon/shim_run.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

static void spawn(const char *script)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    const char *env[] = {"COLOUR=blue", NULL};
    struct runner_spec spec = {.id = ID,
                               .dir = dir,
                               .cwd = "/",
                               .grace_s = 1,
                               .document = "{}",
                               .document_size = 2,
                               .argv = argv,
                               .env = env};
    int n_gone = told.n_gone;
    runner->spawn(runner, &spec);
    ck_assert_int_eq(told.n_gone, n_gone); /* never from within a call */
}

static void await_file(const char *name, const char *text)
{
    struct shim_run run;
    snprintf(run.dir, sizeof run.dir, "%s", dir);
    shim_run_await(&run, name, text);
}

START_TEST(test_a_job)
{
    spawn("cat >&3; echo >&3; echo $COLOUR; printf '{\"n\": 1}\\n{\"n\": 2}\\n' >&3; exit 3");
    runner_run_await(&told.n_ended, 1);
    ck_assert_int_eq(told.n_started, 1);
    ck_assert(told.started_first);
    ck_assert_str_eq(told.reports, "{}|{\"n\": 1}|{\"n\": 2}|");
    ck_assert_int_eq(told.next, 21);
    ck_assert_int_eq(told.log_size, 5);
    ck_assert_int_eq(told.record.status, 3);
    ck_assert_int_eq(told.record.signal, 0);
    ck_assert_int_eq(told.record.reason, RUNNER_EXITED);
    ck_assert_str_eq(told.record.message, "the job exited with status 3");
}
END_TEST

START_TEST(test_reports_come_while_it_runs)
{
    spawn("echo '{}' >&3; exec sleep 100");
    runner_run_await(&told.n_reports, 1);
    ck_assert_int_eq(told.n_started, 1);
    runner->stop(runner, ID);
    runner->stop(runner, ID);
    runner->stop(runner, ID + 1);
    runner_run_await(&told.n_ended, 1);
    ck_assert_int_eq(told.record.reason, RUNNER_STOPPED);
    ck_assert_int_eq(told.record.signal, SIGTERM);
    ck_assert_int_eq(told.record.status, -1);
}
END_TEST

START_TEST(test_stop_before_it_is_started)
{
    spawn("exec sleep 100");
    runner->stop(runner, ID); /* the shim does not exist yet */
    runner_run_await(&told.n_ended, 1);
    ck_assert_int_eq(told.record.reason, RUNNER_STOPPED);
}
END_TEST

START_TEST(test_program_is_missing)
{
    const char *argv[] = {"/no/such/program", NULL};
    struct runner_spec spec = {
        .id = ID, .dir = dir, .cwd = "/", .document = "{}", .document_size = 2, .argv = argv};
    runner->spawn(runner, &spec);
    runner_run_await(&told.n_ended, 1);
    ck_assert_int_eq(told.n_started, 0);
    ck_assert_int_eq(told.record.reason, RUNNER_EXEC_FAILED);
    ck_assert_ptr_nonnull(strstr(told.record.message, "/no/such/program"));
}
END_TEST

START_TEST(test_directory_cannot_be_made)
{
    snprintf(dir, sizeof dir, "%s/no/such/job", checks_scratch());
    spawn("exit 0");
    runner_run_await(&told.n_gone, 1);
    ck_assert(!told.ran);
    ck_assert_int_eq(told.why.code, ERR_IO);
    ck_assert_ptr_nonnull(strstr(told.why.message, "No such file"));
}
END_TEST

START_TEST(test_never_two_shims)
{
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    char path[sizeof dir + 16];
    snprintf(path, sizeof path, "%s/shim.lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    spawn("exit 0");
    runner_run_await(&told.n_gone, 1);
    ck_assert_int_eq(told.why.code, ERR_BUSY);
    close(fd);
}
END_TEST

START_TEST(test_another_attempt_starts_clean)
{
    spawn("echo one; echo '{\"n\": 1}' >&3");
    runner_run_await(&told.n_ended, 1);
    runner_run_close();
    runner_run_open("/no/worker");
    spawn("echo '{\"n\": 2}' >&3");
    runner_run_await(&told.n_ended, 1);
    ck_assert_str_eq(told.reports, "{\"n\": 2}|");
    ck_assert_int_eq(told.log_size, 0);
}
END_TEST

/* The three allocations before the thread pool takes over: the job, its directory, the copy. */
START_TEST(test_spawn_without_memory)
{
    oom_arm(_i);
    spawn("exit 0");
    ck_assert(oom_disarm());
    runner_run_await(&told.n_gone, 1);
    ck_assert_int_eq(told.why.code, ERR_NOMEM);
    ck_assert(!told.ran);
    memset(&told, 0, sizeof told);
    spawn("exit 0");
    runner_run_await(&told.n_ended, 1);
}
END_TEST

/* What the thread pool does, here on this thread. */
START_TEST(test_launch_without_memory)
{
    static char shim[4096];
    const char *argv[] = {"true", NULL};
    struct runner_spec spec = {
        .id = ID, .dir = dir, .cwd = "/", .document = "{}", .document_size = 2, .argv = argv};
    struct launch launch;
    struct err err = ERR_INIT;
    long n = 1;
    build_path("daemon/traind-shim", shim);
    for (bool failed = true; failed; n++) {
        oom_arm(n);
        int rc = launch_shim(shim, &spec, &launch, &err);
        failed = oom_disarm();
        ck_assert_int_eq(rc, failed ? ERR_NOMEM : 0);
    }
    ck_assert_int_gt(n, 10);
    process_await_end(launch.pid);
    ck_assert_int_eq(waitpid(launch.pid, NULL, 0), launch.pid);
    close(launch.pidfd);
}
END_TEST

START_TEST(test_many_reports)
{
    spawn("i=0; while test $i -lt 150; do echo \"{\\\"i\\\": $i}\"; i=$((i+1)); done >&3");
    runner_run_await(&told.n_ended, 1);
    ck_assert_int_eq(told.n_reports, 150);
    ck_assert_ptr_nonnull(strstr(told.reports, "{\"i\": 149}|"));
}
END_TEST

/* A runner is closed in the middle of a job; the next one takes it up where the first left off. */
static void hand_over(int64_t offset)
{
    runner_run_close();
    runner_run_open("/no/worker");
    runner->adopt(runner, ID, dir, offset);
}

START_TEST(test_adopt_a_living_shim)
{
    char fifo[sizeof dir + 16], script[8192];
    snprintf(fifo, sizeof fifo, "%s/go", checks_scratch());
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    snprintf(script, sizeof script,
             "echo '{\"n\": 1}' >&3; echo '{\"n\": 2}' >&3; read x <%s; echo '{\"n\": 3}' >&3; "
             "exit 4",
             fifo);
    spawn(script);
    runner_run_await(&told.n_reports, 2);
    hand_over(9);
    runner_run_await(&told.n_reports, 1);
    ck_assert_int_eq(told.n_started, 1);
    ck_assert(told.started_first);
    ck_assert_str_eq(told.reports, "{\"n\": 2}|");
    int fd = open(fifo, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(write(fd, "\n", 1), 1);
    close(fd);
    runner_run_await(&told.n_ended, 1);
    ck_assert_str_eq(told.reports, "{\"n\": 2}|{\"n\": 3}|");
    ck_assert_int_eq(told.next, 27);
    ck_assert_int_eq(told.record.status, 4);
}
END_TEST

START_TEST(test_adopt_and_stop)
{
    spawn("exec sleep 100");
    runner_run_await(&told.n_started, 1);
    hand_over(0);
    runner->stop(runner, ID);
    runner_run_await(&told.n_ended, 1);
    ck_assert_int_eq(told.record.reason, RUNNER_STOPPED);
}
END_TEST

START_TEST(test_adopt_one_that_has_ended)
{
    spawn("echo '{\"n\": 1}' >&3; exit 5");
    runner_run_await(&told.n_started, 1);
    runner_run_close();
    await_file("exit.json", "}");
    runner_run_open("/no/worker");
    runner->adopt(runner, ID, dir, 0);
    runner_run_await(&told.n_ended, 1);
    ck_assert_int_eq(told.n_started, 1);
    ck_assert_str_eq(told.reports, "{\"n\": 1}|");
    ck_assert_int_eq(told.record.status, 5);
}
END_TEST

START_TEST(test_adopt_what_never_was)
{
    if (_i > 0)
        ck_assert_int_eq(mkdir(dir, 0700), 0);
    runner->adopt(runner, ID, dir, 0);
    runner_run_await(&told.n_gone, 1);
    ck_assert(!told.ran);
}
END_TEST

static pid_t shim_pid(void);

/* What a job leaves is there, also when nothing can be opened at the moment in which it ends. */
START_TEST(test_an_end_without_descriptors)
{
    char fifo[sizeof dir + 16], script[8192];
    struct rlimit before, none;
    snprintf(fifo, sizeof fifo, "%s/go", checks_scratch());
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    int go = open(fifo, O_RDWR | O_CLOEXEC);
    snprintf(script, sizeof script, "read x <%s; echo '{\"n\": 1}' >&3; exit 4", fifo);
    spawn(script);
    runner_run_await(&told.n_started, 1);
    await_file("shim.json", "}");
    pid_t shim = shim_pid();
    getrlimit(RLIMIT_NOFILE, &before);
    int lowest = dup(go);
    close(lowest);
    none = before;
    none.rlim_cur = (rlim_t)lowest;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(write(go, "\n", 1), 1);
    while (kill(shim, 0) == 0) /* until the runner has reaped it */
        uv_run(&loop, UV_RUN_ONCE);
    ck_assert_int_eq(told.n_ended + told.n_gone, 0);
    setrlimit(RLIMIT_NOFILE, &before);
    runner_run_await(&told.n_ended, 1);
    ck_assert_str_eq(told.reports, "{\"n\": 1}|");
    ck_assert_int_eq(told.record.status, 4);
    close(go);
}
END_TEST

static pid_t shim_pid(void)
{
    struct shim_run run;
    snprintf(run.dir, sizeof run.dir, "%s", dir);
    char *text = shim_run_file(&run, "shim.json", NULL);
    int pid;
    ck_assert_int_eq(sscanf(text, "{\"pid\": %d", &pid), 1);
    free(text);
    return (pid_t)pid;
}

START_TEST(test_shim_is_killed)
{
    spawn("echo '{\"n\": 1}' >&3; exec sleep 100");
    runner_run_await(&told.n_reports, 1);
    if (_i == 1)
        hand_over(0);
    else if (_i == 2)
        runner_run_close();
    pid_t pid = shim_pid();
    kill(pid, SIGKILL);
    if (_i == 2) {
        waitpid(pid, NULL, 0);
        runner_run_open("/no/worker");
        runner->adopt(runner, ID, dir, 0);
    }
    runner_run_await(&told.n_gone, 1);
    ck_assert(told.ran);
    ck_assert_int_eq(told.n_ended, 0);
    ck_assert_ptr_nonnull(strstr(told.why.message, "without a record"));
}
END_TEST

/* A number that another process has by now must not be taken for the shim. */
START_TEST(test_adopt_is_not_fooled)
{
    spawn("exit 0");
    runner_run_await(&told.n_ended, 1);
    char path[sizeof dir + 16];
    snprintf(path, sizeof path, "%s/exit.json", dir);
    ck_assert_int_eq(unlink(path), 0);
    snprintf(path, sizeof path, "%s/shim.json", dir);
    FILE *file = fopen(path, "w");
    fprintf(file, "{\"pid\": %d, \"start_time\": 1, \"boot_id\": \"x\"}\n", (int)getpid());
    ck_assert_int_eq(fclose(file), 0);
    hand_over(0);
    runner_run_await(&told.n_gone, 1);
    ck_assert(told.ran);
}
END_TEST

START_TEST(test_adopt_waits_for_a_young_shim)
{
    /* Locked, but silent: as in the moment between its start and shim.json. */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    char path[sizeof dir + 16];
    snprintf(path, sizeof path, "%s/shim.lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    runner->adopt(runner, ID, dir, 0);
    runner->set_alarm(runner, 100); /* the end of the wait: nothing may have been told by then */
    runner_run_await(&told.n_alarms, 1);
    ck_assert_int_eq(told.n_gone + told.n_ended, 0);
    close(fd);
    runner_run_await(&told.n_gone, 1);
    ck_assert(!told.ran);
}
END_TEST

START_TEST(test_broken_record)
{
    static const char no_reason[] = "{\"status\": 0, \"signal\": null, \"reason\": \"tired\", "
                                    "\"message\": \"\", \"ended_ns\": 1, \"oom_kills\": 0}";
    static const char *const broken[] = {"", "{", "[]", "{\"status\": 0}", no_reason};
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    char path[sizeof dir + 16];
    snprintf(path, sizeof path, "%s/exit.json", dir);
    FILE *file = fopen(path, "w");
    fputs(broken[_i], file);
    ck_assert_int_eq(fclose(file), 0);
    runner->adopt(runner, ID, dir, 0);
    runner_run_await(&told.n_gone, 1);
    ck_assert(told.ran);
    ck_assert_ptr_nonnull(strstr(told.why.message, "exit.json"));
}
END_TEST

START_TEST(test_close_lets_go)
{
    spawn("exec sleep 100"); /* the thread pool has it when the teardown closes the runner */
    runner_run_close();
    runner_run_open("/no/worker");
    runner->adopt(runner, ID, dir, 0);
    runner_run_await(&told.n_started, 1);
    runner->stop(runner, ID);
    runner_run_await(&told.n_ended, 1);
}
END_TEST

START_TEST(test_alarm)
{
    runner->set_alarm(runner, 60000);
    runner->set_alarm(runner, 0);
    ck_assert_int_eq(told.n_alarms, 0);
    runner_run_await(&told.n_alarms, 1);
    runner->set_alarm(runner, 0);
    runner->set_alarm(runner, -1);
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(told.n_alarms, 1);
    ck_assert_int_ge(runner->clock_ms(runner), 0);
    ck_assert_int_gt(runner->now_ns(runner), INT64_C(1600000000000000000));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runner");
    TCase *tcase = checks_case(suite, "runner", 60);
    tcase_add_checked_fixture(tcase, runner_run_setup, runner_run_teardown);
    tcase_add_test(tcase, test_a_job);
    tcase_add_test(tcase, test_reports_come_while_it_runs);
    tcase_add_test(tcase, test_stop_before_it_is_started);
    tcase_add_test(tcase, test_program_is_missing);
    tcase_add_test(tcase, test_directory_cannot_be_made);
    tcase_add_test(tcase, test_never_two_shims);
    tcase_add_test(tcase, test_another_attempt_starts_clean);
    tcase_add_loop_test(tcase, test_spawn_without_memory, 1, 4);
    tcase_add_test(tcase, test_launch_without_memory);
    tcase_add_test(tcase, test_many_reports);
    tcase_add_test(tcase, test_adopt_a_living_shim);
    tcase_add_test(tcase, test_adopt_and_stop);
    tcase_add_test(tcase, test_adopt_one_that_has_ended);
    tcase_add_test(tcase, test_an_end_without_descriptors);
    tcase_add_loop_test(tcase, test_adopt_what_never_was, 0, 2);
    tcase_add_loop_test(tcase, test_shim_is_killed, 0, 3);
    tcase_add_test(tcase, test_adopt_is_not_fooled);
    tcase_add_test(tcase, test_adopt_waits_for_a_young_shim);
    tcase_add_loop_test(tcase, test_broken_record, 0, 5);
    tcase_add_test(tcase, test_close_lets_go);
    tcase_add_test(tcase, test_alarm);
    return checks_run(suite);
}
