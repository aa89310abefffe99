/* check_shim_root.c: what only root can try: giving up rights, a full disk, a memory limit. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/launch.h"
#include "tests/daemon/shim_run.h"
#include "tests/lib/checks.h"

static struct shim_run job;
static const char *const NOBODY[] = {"--uid", "65534", "--gid", "65534", "--user", "nobody", NULL};

static void setup(void)
{
    shim_run_init(&job, "{\"version\": 1}");
}

/* Runs a script as nobody; the log is the caller's. */
static char *run_as_nobody(const char *script)
{
    shim_run_sh(&job, NOBODY, script);
    ck_assert_int_eq(shim_run_wait(&job), 0);
    free(shim_run_expect(&job, "exited", 0, -1));
    return shim_run_file(&job, "log", NULL);
}

START_TEST(test_rights_are_gone)
{
    char *log = run_as_nobody("cat /proc/self/status");
    static const char *const wanted[] = {
        "Uid:\t65534\t65534\t65534\t65534\n",
        "Gid:\t65534\t65534\t65534\t65534\n",
        "Groups:\t65534 \n",
        "NoNewPrivs:\t1\n",
        "CapInh:\t0000000000000000\n",
        "CapPrm:\t0000000000000000\n",
        "CapEff:\t0000000000000000\n",
        "CapAmb:\t0000000000000000\n",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        ck_assert_msg(strstr(log, wanted[i]) != NULL, "no %s in %s", wanted[i], log);
    free(log);
}
END_TEST

START_TEST(test_job_is_killed_before_the_shim)
{
    char *log = run_as_nobody("cat /proc/self/oom_score_adj");
    ck_assert_str_eq(log, "500\n");
    free(log);
}
END_TEST

START_TEST(test_standard_files_can_be_opened)
{
    char *log = run_as_nobody("cat </dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr");
    ck_assert_str_eq(log, "{\"version\": 1}out\nerr\n");
    free(log);
}
END_TEST

START_TEST(test_nothing_of_the_daemon_is_in_reach)
{
    char script[16384];
    snprintf(script, sizeof script,
             "kill $PPID && echo signalled; ls /proc/$PPID/fd && echo listed; ls %s && echo seen; "
             "echo x >>%s/exit.json && echo written; id -u",
             job.dir, job.dir);
    ck_assert_int_eq(chmod(checks_scratch(), 0755), 0);
    char *log = run_as_nobody(script);
    ck_assert_ptr_null(strstr(log, "signalled"));
    ck_assert_ptr_null(strstr(log, "listed"));
    ck_assert_ptr_null(strstr(log, "seen"));
    ck_assert_ptr_null(strstr(log, "written"));
    ck_assert_ptr_nonnull(strstr(log, "65534\n"));
    free(log);
}
END_TEST

/* Root could enter it: that it is refused shows that the rights were gone before. */
START_TEST(test_directory_is_entered_as_the_user)
{
    const char *options[16] = {"--cwd", job.dir};
    for (size_t i = 0; NOBODY[i] != NULL; i++)
        options[i + 2] = NOBODY[i];
    ck_assert_int_eq(chmod(checks_scratch(), 0755), 0);
    shim_run_sh(&job, options, "exit 0");
    ck_assert_int_eq(shim_run_wait(&job), 0);
    char *message = shim_run_expect(&job, "exec_failed", -1, -1);
    ck_assert_ptr_nonnull(strstr(message, "entering the working directory"));
    ck_assert_ptr_nonnull(strstr(message, "Permission denied"));
    free(message);
}
END_TEST

START_TEST(test_user_without_an_account)
{
    const char *const options[] = {"--uid", "123456", "--gid", "123457", NULL};
    shim_run_sh(&job, options, "id; echo $HOME $USER $SHELL");
    ck_assert_int_eq(shim_run_wait(&job), 0);
    char *log = shim_run_file(&job, "log", NULL);
    ck_assert_str_eq(log, "uid=123456 gid=123457 groups=123457\n/ 123456 /bin/sh\n");
    free(log);
}
END_TEST

/* As the daemon starts it: the name is looked up, the document and the directory are made. */
START_TEST(test_launched)
{
    static char shim[4096], dir[4096];
    const char *const argv[] = {"sh", "-c", "cat; id -un; echo $COLOUR; pwd", NULL};
    const char *const env[] = {"COLOUR=blue", NULL};
    struct runner_spec spec = {.id = 8,
                               .dir = dir,
                               .cwd = "/tmp",
                               .drop = true,
                               .uid = 65534,
                               .gid = 65534,
                               .grace_s = 10,
                               .document = "{}\n",
                               .document_size = 3,
                               .argv = argv,
                               .env = env};
    struct err err = ERR_INIT;
    struct launch launch;
    snprintf(dir, sizeof dir, "%s/8", checks_scratch());
    struct runner_spec *copy = launch_copy(&spec);
    int rc = launch_shim(build_path("daemon/traind-shim", shim), copy, &launch, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    free(copy);
    snprintf(job.dir, sizeof job.dir, "%s", dir);
    job.pid = launch.pid;
    ck_assert_int_eq(shim_run_wait(&job), 0);
    free(shim_run_expect(&job, "exited", 0, -1));
    char *log = shim_run_file(&job, "log", NULL);
    ck_assert_str_eq(log, "{}\nnobody\nblue\n/tmp\n");
    free(log);
    struct stat st;
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_int_eq((int)st.st_uid, 0);
    ck_assert_int_eq((int)(st.st_mode & 0777), 0700);
}
END_TEST

START_TEST(test_groups_of_the_starter_are_dropped)
{
    const gid_t groups[] = {4, 6};
    ck_assert_int_eq(setgroups(2, groups), 0);
    char *log = run_as_nobody("id -G");
    ck_assert_str_eq(log, "65534\n");
    free(log);
}
END_TEST

static bool leave_mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* Root of a container or in a chroot often may not. */
static bool can_mount(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(leave_mounts() ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A file system of its own, with little room, in a mount namespace of this test alone. */
static void mount_small_disk(void)
{
    ck_assert(leave_mounts());
    ck_assert_int_eq(mount("small", job.dir, "tmpfs", 0, "size=64k,mode=700"), 0);
    char path[sizeof job.dir + 16];
    snprintf(path, sizeof path, "%s/job.json", job.dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, "{}", 2), 2);
    close(fd);
}

static void fill_disk(int fd)
{
    static const char block[4096];
    while (write(fd, block, sizeof block) > 0)
        continue;
    ck_assert_int_eq(errno, ENOSPC);
}

START_TEST(test_full_disk)
{
    char ballast[sizeof job.dir + 16], go[sizeof job.dir + 16], script[16384];
    snprintf(go, sizeof go, "%s/go", checks_scratch());
    ck_assert_int_eq(mkfifo(go, 0600), 0);
    mount_small_disk();
    snprintf(script, sizeof script,
             "echo begin; read x <%s; head -c 300000 /dev/zero; echo '{\"n\": 1}' >&3; "
             "echo '{\"n\": 2}' >&3; echo done >%s",
             go, go);
    shim_run_sh(&job, NULL, script);
    shim_run_await(&job, "log", "begin");
    snprintf(ballast, sizeof ballast, "%s/ballast", job.dir);
    int full = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    fill_disk(full);
    int fd = open(go, O_WRONLY | O_CLOEXEC); /* once the job reads */
    ck_assert_int_eq(write(fd, "\n", 1), 1);
    close(fd);
    fd = open(go, O_RDONLY | O_CLOEXEC);
    char word[5];
    ck_assert_int_eq(read(fd, word, 5), 5); /* the job went on and ended, without room */
    close(fd);
    ck_assert_int_eq(ftruncate(full, 0), 0);
    ck_assert_int_eq(shim_run_wait(&job), 0);
    free(shim_run_expect(&job, "exited", 0, -1));
    char *reports = shim_run_file(&job, "report.jsonl", NULL);
    ck_assert_ptr_nonnull(strstr(reports, "{\"n\": 2}\n"));
    size_t size;
    char *log = shim_run_file(&job, "log", &size);
    static const char lost[] = "bytes of output were lost: No space left on device]\n";
    ck_assert_ptr_nonnull(memmem(log, size, lost, sizeof lost - 1));
    free(reports);
    free(log);
    ck_assert_int_eq(umount2(job.dir, MNT_DETACH), 0); /* or its directory would stay */
}
END_TEST

/* A memory cgroup below our own: version 2 where it has the controller, else version 1. */
static const struct {
    const char *base, *limit, *no_swap, *no_swap_value;
} cgroups[] = {
    {"/sys/fs/cgroup/traind-check", "memory.max", "memory.swap.max", "0"},
    {"/sys/fs/cgroup/memory/traind-check", "memory.limit_in_bytes", "memory.swappiness", "0"},
};

static bool cgroup_write(const char *dir, const char *name, const char *value)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
    if (fd >= 0)
        close(fd);
    return written;
}

/* Makes the group `dir` (256 bytes) with a limit of 64 MiB; false: not possible here. */
static bool cgroup_make(char *dir)
{
    for (size_t i = 0; i < sizeof cgroups / sizeof *cgroups; i++) {
        snprintf(dir, 256, "%s-%d", cgroups[i].base, (int)getpid());
        if (mkdir(dir, 0755) < 0)
            continue;
        if (cgroup_write(dir, cgroups[i].limit, "67108864")) {
            cgroup_write(dir, cgroups[i].no_swap, cgroups[i].no_swap_value); /* if there is swap */
            return true;
        }
        rmdir(dir);
    }
    return false;
}

static char group[256]; /* "": none could be made */

START_TEST(test_out_of_memory)
{
    char helper[4096];
    const char *const program[] = {build_path("tests/daemon/job_helper", helper), "eat", NULL};
    ck_assert(cgroup_write(group, "cgroup.procs", "0")); /* the shim inherits it */
    shim_run_start(&job, NOBODY, program);
    ck_assert_int_eq(shim_run_wait(&job), 0);
    char *message = shim_run_expect(&job, "oom", -1, SIGKILL);
    ck_assert_ptr_nonnull(strstr(message, "memory"));
    free(message);
    json_t *record = shim_run_exit(&job);
    ck_assert_int_eq(json_integer_value(json_object_get(record, "oom_kills")), 1);
    json_decref(record);
}
END_TEST

int main(void)
{
    static const char *const names[] = {"rights are gone",
                                        "job is killed before the shim",
                                        "standard files can be opened",
                                        "nothing of the daemon is in reach",
                                        "directory is entered as the user",
                                        "user without an account",
                                        "groups of the starter are dropped",
                                        "full disk"};
    if (geteuid() != 0)
        return checks_skip(names, sizeof names / sizeof *names, "needs root");
    Suite *suite = suite_create("shim_root");
    TCase *tcase = checks_case(suite, "shim_root", 60);
    tcase_add_checked_fixture(tcase, setup, checks_scratch_remove);
    tcase_add_test(tcase, test_rights_are_gone);
    tcase_add_test(tcase, test_job_is_killed_before_the_shim);
    tcase_add_test(tcase, test_standard_files_can_be_opened);
    tcase_add_test(tcase, test_nothing_of_the_daemon_is_in_reach);
    tcase_add_test(tcase, test_directory_is_entered_as_the_user);
    tcase_add_test(tcase, test_user_without_an_account);
    tcase_add_test(tcase, test_launched);
    tcase_add_test(tcase, test_groups_of_the_starter_are_dropped);
    if (can_mount())
        tcase_add_test(tcase, test_full_disk);
    else
        printf("# full disk: skipped, no file system can be mounted here\n");
    if (cgroup_make(group))
        tcase_add_test(tcase, test_out_of_memory);
    else
        printf("# the job that is killed for memory: skipped, no memory cgroup can be made here\n");
    int rc = checks_run(suite);
    if (group[0] != '\0')
        rmdir(group);
    return rc;
}
