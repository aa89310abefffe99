#define _GNU_SOURCE
#include "tests/client/run.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { WORDS_MOST = 32 };

static const char program[] = "client/trainctl"; /* tests run in the build's top directory */

/* The child's arguments and environment, in memory that lives until the spawn. */
struct words {
    char copy[1024];
    char *argv[WORDS_MOST];
    char socket[256];
    char *env[WORDS_MOST];
};

static void fill(struct words *words, const char *socket, const char *command,
                 const char *const *environment)
{
    static char path[] = "PATH=/usr/bin:/bin", zone[] = "TZ=UTC", charset[] = "LC_ALL=C.UTF-8",
                terminal[] = "TERM=xterm";
    size_t n = 0;
    snprintf(words->copy, sizeof words->copy, "%s", command);
    words->argv[n++] = (char *)program;
    for (char *word = strtok(words->copy, " "); word != NULL; word = strtok(NULL, " "))
        words->argv[n++] = word;
    words->argv[n] = NULL;
    n = 0;
    for (; environment != NULL && environment[n] != NULL; n++)
        words->env[n] = (char *)environment[n]; /* getenv finds the first */
    snprintf(words->socket, sizeof words->socket, "TRAIND_SOCKET=%s", socket);
    words->env[n++] = words->socket;
    words->env[n++] = path;
    words->env[n++] = zone;
    words->env[n++] = charset;
    words->env[n++] = terminal;
    words->env[n] = NULL;
}

static void spawn(struct run *run, struct words *words, posix_spawn_file_actions_t *actions,
                  short flags)
{
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, flags);
    int rc = posix_spawn(&run->pid, program, actions, &attributes, words->argv, words->env);
    ck_assert_msg(rc == 0, "%s: %s", program, strerror(rc));
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(actions);
}

void run_start(struct run *run, const char *socket, const char *command,
               const char *const *environment)
{
    struct words words;
    int in[2], out[2];
    posix_spawn_file_actions_t actions;
    memset(run, 0, sizeof *run);
    fill(&words, socket, command, environment);
    ck_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    run->errors_fd = memfd_create("errors", MFD_CLOEXEC);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, run->errors_fd, 2);
    spawn(run, &words, &actions, 0);
    close(in[0]);
    close(out[1]);
    run->in = in[1];
    run->out = out[0];
}

void run_start_terminal(struct run *run, const char *socket, const char *command,
                        const char *const *environment)
{
    struct words words;
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    struct termios modes;
    int master, slave;
    char name[64];
    posix_spawn_file_actions_t actions;
    memset(run, 0, sizeof *run);
    fill(&words, socket, command, environment);
    ck_assert_int_eq(openpty(&master, &slave, name, NULL, &size), 0);
    /* Ctrl-C first signals, then throws away what is not read yet: by then it may be the answer. */
    ck_assert_int_eq(tcgetattr(slave, &modes), 0);
    modes.c_lflag |= NOFLSH;
    ck_assert_int_eq(tcsetattr(slave, TCSANOW, &modes), 0);
    fcntl(master, F_SETFD, FD_CLOEXEC);
    fcntl(slave, F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_init(&actions);
    /* Opened by the leader of a new session it becomes the controlling terminal. */
    posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    spawn(run, &words, &actions, POSIX_SPAWN_SETSID);
    close(slave);
    run->in = run->out = master;
    run->errors_fd = -1;
}

/* False at the end; a terminal's is EIO. */
static bool read_some(struct run *run)
{
    ck_assert_uint_lt(run->used, sizeof run->text - 1);
    ssize_t n = read(run->out, run->text + run->used, sizeof run->text - 1 - run->used);
    ck_assert(n >= 0 || errno == EIO);
    run->used += n > 0 ? (size_t)n : 0;
    run->text[run->used] = '\0';
    return n > 0;
}

void run_until(struct run *run, const char *wanted)
{
    while (strstr(run->text, wanted) == NULL)
        ck_assert_msg(read_some(run), "'%s' is not in: %s", wanted, run->text);
}

void run_write(struct run *run, const char *text)
{
    ck_assert_int_eq(write(run->in, text, strlen(text)), (ssize_t)strlen(text));
}

void run_finish(struct run *run)
{
    int status;
    while (read_some(run))
        ;
    ck_assert_int_eq(waitpid(run->pid, &status, 0), run->pid);
    run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (run->errors_fd >= 0) {
        ssize_t n = pread(run->errors_fd, run->errors, sizeof run->errors - 1, 0);
        run->errors[n > 0 ? n : 0] = '\0';
        close(run->errors_fd);
        if (run->in >= 0)
            close(run->in);
    }
    close(run->out);
}

int run_command(struct run *run, const char *socket, const char *command, const char *input)
{
    run_start(run, socket, command, NULL);
    if (input != NULL)
        run_write(run, input);
    close(run->in);
    run->in = -1;
    run_finish(run);
    return run->status;
}
