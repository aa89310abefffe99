/* check_shim.c: how jobs end, and that nothing of them is left. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/daemon/shim_run.h"
#include "tests/lib/checks.h"

static struct shim_run job;
static const char *const SHORT_GRACE[] = {"--grace", "0.1", NULL};

static void setup(void)
{
    shim_run_init(&job, "{\"version\": 1}");
}

/* Runs to the end; returns the message of exit.json, checked for a part of it. */
static void expect(const char *reason, int status, int sig, const char *part)
{
    ck_assert_int_eq(shim_run_wait(&job), 0);
    char *message = shim_run_expect(&job, reason, status, sig);
    ck_assert_msg(strstr(message, part) != NULL, "'%s' is not in '%s'", part, message);
    free(message);
}

static const struct {
    const char *script, *reason;
    int status, sig;
    const char *part;
} ends[] = {
    {"exit 0", "exited", 0, -1, "exited with status 0"},
    {"exit 3", "exited", 3, -1, "exited with status 3"},
    {"kill -SEGV $$", "signalled", -1, SIGSEGV, "Segmentation fault"},
    {"kill -KILL $$", "signalled", -1, SIGKILL, "Killed"},
    {"kill -KILL 0", "signalled", -1, SIGKILL, "Killed"},
    {"exec 0<&- 1>&- 2>&- 3>&-; exit 4", "exited", 4, -1, "status 4"},
    {"exec 1>&- 2>&-; echo '{}' >&3; exit 5", "exited", 5, -1, "status 5"},
};

START_TEST(test_ends)
{
    shim_run_sh(&job, NULL, ends[_i].script);
    expect(ends[_i].reason, ends[_i].status, ends[_i].sig, ends[_i].part);
}
END_TEST

START_TEST(test_files_say_what_was_said)
{
    shim_run_sh(&job, NULL, "cat; echo out; echo err >&2; printf '{\"n\": 1}\\n{\"n\": 2}' >&3");
    expect("exited", 0, -1, "status 0");
    char *log = shim_run_file(&job, "log", NULL);
    ck_assert_str_eq(log, "{\"version\": 1}out\nerr\n");
    char *reports = shim_run_file(&job, "report.jsonl", NULL);
    ck_assert_str_eq(reports, "{\"n\": 1}\n{\"n\": 2}\n"); /* half lines are made whole */
    free(log);
    free(reports);
}
END_TEST

START_TEST(test_nul_bytes_are_bytes)
{
    shim_run_sh(&job, NULL, "printf 'a\\0b'");
    expect("exited", 0, -1, "status 0");
    size_t size;
    char *log = shim_run_file(&job, "log", &size);
    ck_assert_uint_eq(size, 3);
    ck_assert_mem_eq(log, "a\0b", 3);
    free(log);
}
END_TEST

START_TEST(test_environment_is_clean)
{
    const char *const options[] = {"--env", "COLOUR=blue", "--env", "PATH=/bin:/usr/bin",
                                   "--env", "COLOUR=red",  "--env", "TRAIND_JOB_ID=8",
                                   "--env", "LANG=C",      NULL};
    ck_assert_int_eq(setenv("SECRET", "of the daemon", 1), 0);
    shim_run_sh(&job, options, "env");
    expect("exited", 0, -1, "status 0");
    char *log = shim_run_file(&job, "log", NULL);
    ck_assert_ptr_null(strstr(log, "SECRET"));
    ck_assert_ptr_null(strstr(log, "COLOUR=blue"));
    const char *const wanted[] = {"COLOUR=red\n",
                                  "PATH=/bin:/usr/bin\n",
                                  "TRAIND_JOB_ID=7\n",
                                  "HOME=/",
                                  "TRAIND_REPORT_FD=3\n",
                                  "LANG=C\n",
                                  "USER=",
                                  "LOGNAME=",
                                  "SHELL=/"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        ck_assert_msg(strstr(log, wanted[i]) != NULL, "%s is not in %s", wanted[i], log);
    free(log);
}
END_TEST

START_TEST(test_descriptors_and_seals)
{
    char helper[4096];
    const char *const program[] = {build_path("tests/daemon/job_helper", helper), "describe", NULL};
    ck_assert_int_ge(fcntl(0, F_DUPFD, 50), 0); /* one without close-on-exec, to be leaked */
    shim_run_start(&job, NULL, program);
    expect("exited", 0, -1, "status 0");
    char *log = shim_run_file(&job, "log", NULL);
    ck_assert_str_eq(log, "fds 0 1 2 3\nseals all\nwrite refused\nblocked 0\nignored 0\n"
                          "leader yes\ncore 0\n");
    free(log);
}
END_TEST

START_TEST(test_flood)
{
    char helper[4096];
    const char *const program[] = {build_path("tests/daemon/job_helper", helper), "flood", NULL};
    shim_run_start(&job, NULL, program);
    expect("exited", 0, -1, "status 0");
    size_t size;
    char *reports = shim_run_file(&job, "report.jsonl", &size);
    ck_assert_uint_lt(size, 1 << 20);
    static const char last[] = "{\"last\": true}\n";
    ck_assert_uint_gt(size, sizeof last);
    ck_assert_str_eq(reports + size - strlen(last), last); /* the last word is never lost */
    free(reports);
}
END_TEST

START_TEST(test_start_fails)
{
    static const struct {
        const char *cwd, *program, *part;
    } rows[] = {
        {"/", "/no/such/program", "running the program /no/such/program: No such file"},
        {"/", "no-such-program", "running the program no-such-program: No such file"},
        {"/", "/etc/passwd", "running the program /etc/passwd: Permission denied"},
        {"/no/such/directory", "true", "the working directory /no/such/directory: No such file"},
    };
    const char *const options[] = {"--cwd", rows[_i].cwd, NULL};
    const char *const program[] = {rows[_i].program, NULL};
    shim_run_start(&job, options, program);
    expect("exec_failed", -1, -1, rows[_i].part);
}
END_TEST

START_TEST(test_document_is_missing)
{
    char path[sizeof job.dir + 16];
    snprintf(path, sizeof path, "%s/job.json", job.dir);
    ck_assert_int_eq(unlink(path), 0);
    shim_run_sh(&job, NULL, "exit 0");
    expect("exec_failed", -1, -1, "job.json: No such file");
}
END_TEST

START_TEST(test_hung)
{
    shim_run_sh(&job, SHORT_GRACE, "exec 3>&-; trap '' TERM; while :; do sleep 10; done");
    expect("hung", -1, SIGKILL, "closed its reports but did not end within 0.1 s");
}
END_TEST

START_TEST(test_ends_within_the_grace)
{
    shim_run_sh(&job, NULL, "exec 3>&-; exit 6");
    expect("exited", 6, -1, "status 6");
}
END_TEST

static const struct {
    const char *script;
    int status, sig;
} stops[] = {
    {"trap 'exit 9' TERM; echo ready; while :; do sleep 10 & wait; done", 9, -1},
    {"trap '' TERM; echo ready; while :; do sleep 10; done", -1, SIGKILL},
    {"trap 'exit 9' TERM; echo ready; kill -STOP $$; while :; do sleep 10 & wait; done", 9, -1},
    {"trap '' TERM CONT; echo ready; while :; do kill -STOP $$; done", -1, SIGKILL},
    {"echo ready; exec sleep 100", -1, SIGTERM},
};

START_TEST(test_stop)
{
    shim_run_sh(&job, (const char *const[]){"--grace", "0.3", NULL}, stops[_i].script);
    shim_run_await(&job, "log", "ready");
    kill(job.pid, SIGTERM);
    kill(job.pid, SIGTERM); /* a second one changes nothing */
    expect("stopped", stops[_i].status, stops[_i].sig, "asked to stop");
}
END_TEST

/* Everyone in the tree holds a lock on a file: once exit.json is there it must be free. */
static const char *const trees[] = {
    "sleep 100 & echo ready",
    "setsid sleep 100 & echo ready",
    "(setsid sh -c 'sleep 101 & sleep 102 & (setsid sleep 103 &)' &) ; echo ready",
    "trap '' TERM; setsid sh -c 'trap \"\" TERM; (sleep 104; :) & sleep 105' & kill -KILL $$",
    "for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'sleep 106; :' &); done",
};

START_TEST(test_nothing_is_left)
{
    char path[sizeof job.dir + 16], script[8192];
    snprintf(path, sizeof path, "%s/held", job.dir);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    snprintf(script, sizeof script, "exec 9>%s; %s", path, trees[_i]);
    shim_run_sh(&job, NULL, script);
    shim_run_await(&job, "exit.json", "}");
    char byte;
    ck_assert_int_eq(read(fd, &byte, 1), 0); /* end of file: no writer lives; else EAGAIN */
    ck_assert_int_eq(shim_run_wait(&job), 0);
}
END_TEST

START_TEST(test_nothing_outruns_the_shim)
{
    char helper[4096];
    const char *const program[] = {build_path("tests/daemon/job_helper", helper), "chain", NULL};
    shim_run_start(&job, NULL, program);
    expect("exited", 0, -1, "status 0");
}
END_TEST

START_TEST(test_shim_outlives_its_starter)
{
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    job.outlives = true;
    pid_t starter = fork();
    if (starter == 0) {
        shim_run_sh(&job, NULL, "echo ready; exec sleep 100");
        shim_run_await(&job, "log", "ready");
        kill(getpid(), SIGKILL);
    }
    int status;
    ck_assert_int_eq(waitpid(starter, &status, 0), starter);
    ck_assert(WIFSIGNALED(status));
    size_t size;
    char *text = shim_run_file(&job, "shim.json", &size);
    json_t *shim = json_loadb(text, size, 0, NULL);
    ck_assert_ptr_nonnull(shim);
    job.pid = (pid_t)json_integer_value(json_object_get(shim, "pid"));
    json_decref(shim);
    free(text);
    kill(job.pid, SIGTERM);
    expect("stopped", -1, SIGTERM, "asked to stop");
}
END_TEST

START_TEST(test_job_dies_with_the_shim)
{
    shim_run_sh(&job, NULL, "echo pid $$ end; exec sleep 100");
    shim_run_await(&job, "worker.json", "}");
    shim_run_await(&job, "log", "end");
    char *log = shim_run_file(&job, "log", NULL);
    int pid;
    ck_assert_int_eq(sscanf(log, "pid %d", &pid), 1);
    free(log);
    kill(job.pid, SIGKILL);
    process_await_end((pid_t)pid);
    waitpid(job.pid, NULL, 0);
}
END_TEST

START_TEST(test_usage)
{
    const char *const wrong[][3] = {
        {"--grace", "soon", NULL},   {"--env", "=x", NULL},     {"--env", "x", NULL},
        {"--uid", "root", NULL},     {"--uid", "1", NULL},      {"--uid", "4294967295", NULL},
        {"--dir", "/no/such", NULL}, {"--colour", "red", NULL},
    };
    shim_run_sh(&job, wrong[_i], "exit 0");
    ck_assert_int_eq(shim_run_wait(&job), 2);
    char path[sizeof job.dir + 16];
    snprintf(path, sizeof path, "%s/exit.json", job.dir);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shim");
    TCase *tcase = checks_case(suite, "shim", 60);
    tcase_add_checked_fixture(tcase, setup, checks_scratch_remove);
    tcase_add_loop_test(tcase, test_ends, 0, sizeof ends / sizeof *ends);
    tcase_add_test(tcase, test_files_say_what_was_said);
    tcase_add_test(tcase, test_nul_bytes_are_bytes);
    tcase_add_test(tcase, test_environment_is_clean);
    tcase_add_test(tcase, test_descriptors_and_seals);
    tcase_add_test(tcase, test_flood);
    tcase_add_loop_test(tcase, test_start_fails, 0, 4);
    tcase_add_test(tcase, test_document_is_missing);
    tcase_add_test(tcase, test_hung);
    tcase_add_test(tcase, test_ends_within_the_grace);
    tcase_add_loop_test(tcase, test_stop, 0, sizeof stops / sizeof *stops);
    tcase_add_loop_test(tcase, test_nothing_is_left, 0, sizeof trees / sizeof *trees);
    tcase_add_test(tcase, test_nothing_outruns_the_shim);
    tcase_add_test(tcase, test_shim_outlives_its_starter);
    tcase_add_test(tcase, test_job_dies_with_the_shim);
    tcase_add_loop_test(tcase, test_usage, 0, 8);
    return checks_run(suite);
}
