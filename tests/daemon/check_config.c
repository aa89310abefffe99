/* The command line, the state directory and the socket file. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/config.h"
#include "daemon/listen.h"
#include "daemon/statedir.h"
#include "tests/lib/checks.h"

static int read_line(const char *line, struct config *config, struct err *err)
{
    char copy[512], *argv[32] = {"traind"};
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    return config_read(argc, argv, config, err);
}

START_TEST(wrong_lines)
{
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"--user --cpu-devices 0", "--cpu-devices: \"0\" is not a number from 1 to 64"},
        {"--user --cpu-devices 65", "from 1 to 64"},
        {"--user --cpu-devices 2x", "\"2x\""},
        {"--user --grace -1", "from 1 to 3600"},
        {"--user --half-life 0", "from 1 to 10000"},
        {"--user --user-devices 65", "from 1 to 64"},
        {"--user --user-jobs x", "from 1 to 1000000"},
        {"--user --state=", "--state: the path is empty"},
        {"--user --shim=", "--shim: the path is empty"},
        {"--user now", "unexpected argument \"now\""},
        {"--user --frobnicate", "traind --help"},
        {"--user --group no-such-group", "no group \"no-such-group\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config config;
        struct err err = ERR_INIT;
        ck_assert_int_eq(read_line(cases[i].line, &config, &err), ERR_USAGE);
        ck_assert_msg(strstr(err.message, cases[i].words) != NULL, "%s: %s", cases[i].line,
                      err.message);
        config_done(&config);
    }
}
END_TEST

START_TEST(a_socket_path_that_is_too_long_is_refused)
{
    struct config config;
    struct err err = ERR_INIT;
    char line[300] = "--user --socket /";
    memset(line + strlen(line), 'x', 120);
    ck_assert_int_eq(read_line(line, &config, &err), ERR_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, "longer than 107 bytes"));
    config_done(&config);
}
END_TEST

START_TEST(defaults_of_a_user)
{
    struct config config;
    struct err err = ERR_INIT;
    unsetenv("TRAIND_SOCKET");
    setenv("XDG_RUNTIME_DIR", "/run/user/5", 1);
    setenv("XDG_STATE_HOME", "/home/a/state", 1);
    ck_assert_int_eq(read_line("--user", &config, &err), 0);
    ck_assert(config.user_mode && !config.group.exists && config.grace_s == 10);
    ck_assert_int_eq(config.cpu_devices, 0);
    ck_assert_str_eq(config.socket, "/run/user/5/traind/traind.sock");
    ck_assert_str_eq(config.state, "/home/a/state/traind");
    config_done(&config);
    unsetenv("XDG_RUNTIME_DIR");
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/home/b", 1);
    ck_assert_int_eq(read_line("--user --cpu-devices 8", &config, &err), 0);
    ck_assert_int_eq(config.cpu_devices, 8);
    ck_assert_str_eq(config.state, "/home/b/.local/state/traind");
    ck_assert_ptr_nonnull(strstr(config.socket, "/tmp/traind-"));
    config_done(&config);
    setenv("TRAIND_SOCKET", "/s", 1);
    ck_assert_int_eq(read_line("--user --state d", &config, &err), 0);
    ck_assert_str_eq(config.socket, "/s");
    ck_assert_int_eq(config.state[0], '/');
    config_done(&config);
}
END_TEST

/* ── The state directory ── */

static void teardown(void)
{
    checks_scratch_remove();
}

START_TEST(the_state_directory_is_ours_alone)
{
    char path[PATH_MAX];
    struct stat st;
    struct err err = ERR_INIT;
    int first, second = -1;
    snprintf(path, sizeof path, "%s/a/b", checks_scratch());
    ck_assert_int_eq(statedir_open(path, &first, &err), 0);
    stat(path, &st);
    ck_assert_int_eq(st.st_mode & 07777, 0700);
    ck_assert_int_eq(statedir_open(path, &second, &err), ERR_BUSY);
    ck_assert_int_eq(second, -1);
    statedir_close(first);
    ck_assert_int_eq(statedir_open(path, &second, &err), 0);
    statedir_close(second);
    chmod(path, 0755);
    ck_assert_int_eq(statedir_open(path, &second, &err), ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "others can enter it"));
}
END_TEST

/* A copy of a dead daemon's lock, in a process that is gone as soon as somebody opens the file. */
static pid_t hold_until_opened(const char *state)
{
    char lock[PATH_MAX + 8], event[512];
    int fd, ready[2];
    struct err err = ERR_INIT;
    ck_assert_int_eq(statedir_open(state, &fd, &err), 0);
    snprintf(lock, sizeof lock, "%s/lock", state);
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int inotify = inotify_init();
        inotify_add_watch(inotify, lock, IN_OPEN);
        close(ready[1]); /* tells that it watches */
        _exit(read(inotify, event, sizeof event) > 0 ? 0 : 1);
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], event, 1), 0);
    close(ready[0]);
    close(fd); /* as a crash does: without an unlock */
    return pid;
}

START_TEST(a_lock_that_outlives_its_daemon_by_a_moment_is_waited_for)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    int fd = -1, status;
    snprintf(path, sizeof path, "%s/a", checks_scratch());
    pid_t holder = hold_until_opened(path);
    ck_assert_msg(statedir_open(path, &fd, &err) == 0, "%s", err.message);
    ck_assert_int_eq(waitpid(holder, &status, 0), holder);
    ck_assert_int_eq(status, 0);
    statedir_close(fd);
}
END_TEST

static void ck_refuses(const char *state, const char *why)
{
    int fd;
    struct err err = ERR_INIT;
    ck_assert_int_eq(statedir_open(state, &fd, &err), ERR_IO);
    ck_assert_msg(strstr(err.message, why) != NULL, "%s", err.message);
}

START_TEST(the_state_directory_is_a_directory)
{
    char path[PATH_MAX], jobs[PATH_MAX + 8];
    int fd;
    struct err err = ERR_INIT;
    snprintf(path, sizeof path, "%s/link", checks_scratch());
    ck_assert_int_eq(symlink(checks_scratch(), path), 0);
    ck_refuses(path, "link: is a symbolic link; it has to be a directory");
    snprintf(path, sizeof path, "%s/state", checks_scratch());
    ck_assert_int_eq(statedir_open(path, &fd, &err), 0);
    statedir_close(fd);
    snprintf(jobs, sizeof jobs, "%s/jobs", path);
    ck_assert_int_eq(rmdir(jobs), 0);
    close(open(jobs, O_WRONLY | O_CREAT, 0600));
    ck_refuses(path, "jobs: is not a directory; it has to be a directory");
}
END_TEST

/* ── The socket file ── */

static struct config config_at(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", checks_scratch(), name);
    return (struct config){.user_mode = true, .socket = path};
}

static int connect_to(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int rc = connect(fd, (struct sockaddr *)&to, sizeof to);
    close(fd);
    return rc;
}

/* Leaves a socket file behind on which nobody listens. */
static void leave_stale(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    close(fd);
    ck_assert_int_eq(access(path, F_OK), 0);
}

START_TEST(a_stale_socket_is_replaced_and_a_live_one_is_not)
{
    uv_loop_t loop;
    struct stat st;
    struct err err = ERR_INIT;
    struct listener *listener = NULL, *second = NULL;
    struct config config = config_at("run/s");
    uv_loop_init(&loop);
    ck_assert_int_eq(listener_open(&loop, &config, &listener, &err), 0);
    listener_close(listener);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_ne(access(config.socket, F_OK), 0); /* a clean stop takes it away */
    leave_stale(config.socket);
    ck_assert_int_eq(listener_open(&loop, &config, &listener, &err), 0);
    stat(config.socket, &st);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    ck_assert_int_eq(listener_open(&loop, &config, &second, &err), ERR_BUSY);
    ck_assert_ptr_null(second);
    ck_assert_int_eq(connect_to(config.socket), 0);
    listener_close(listener);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

START_TEST(a_file_in_the_sockets_place_is_left_alone)
{
    uv_loop_t loop;
    struct err err = ERR_INIT;
    struct listener *listener = NULL;
    struct config config = config_at("file");
    fclose(fopen(config.socket, "w"));
    uv_loop_init(&loop);
    ck_assert_int_eq(listener_open(&loop, &config, &listener, &err), ERR_IO);
    ck_assert_int_eq(access(config.socket, F_OK), 0);
    uv_loop_close(&loop);
}
END_TEST

START_TEST(a_directory_that_others_can_write_to_is_refused)
{
    uv_loop_t loop;
    struct err err = ERR_INIT;
    struct listener *listener = NULL;
    struct config config = config_at("open/s");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/open", checks_scratch());
    mkdir(path, 0700);
    chmod(path, 0777);
    uv_loop_init(&loop);
    ck_assert_int_eq(listener_open(&loop, &config, &listener, &err), ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "others can write"));
    uv_loop_close(&loop);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *tcase = checks_case(suite, "command line", 0);
    tcase_add_test(tcase, wrong_lines);
    tcase_add_test(tcase, a_socket_path_that_is_too_long_is_refused);
    tcase_add_test(tcase, defaults_of_a_user);
    tcase = checks_case(suite, "files", 0);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, the_state_directory_is_ours_alone);
    tcase_add_test(tcase, a_lock_that_outlives_its_daemon_by_a_moment_is_waited_for);
    tcase_add_test(tcase, the_state_directory_is_a_directory);
    tcase_add_test(tcase, a_stale_socket_is_replaced_and_a_live_one_is_not);
    tcase_add_test(tcase, a_file_in_the_sockets_place_is_left_alone);
    tcase_add_test(tcase, a_directory_that_others_can_write_to_is_refused);
    return checks_run(suite);
}
