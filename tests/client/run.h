/* run.h: runs the trainctl that was built, through pipes or on a pseudo-terminal. */
#ifndef TESTS_CLIENT_RUN_H
#define TESTS_CLIENT_RUN_H

#include <stddef.h>
#include <sys/types.h>

struct run {
    pid_t pid;
    int in, out;       /* ends of its pipes, or the terminal's master in both */
    int status;        /* exit status, or 128 + signal */
    char text[262144]; /* what it wrote to standard output, or to the terminal */
    size_t used;
    char errors[16384]; /* what it wrote to standard error; on a terminal it is in `text` */
    int errors_fd;
};

/* `command` is trainctl's arguments, split at blanks. `environment`: "NAME=VALUE" strings, up to
 * NULL, beside PATH, TZ=UTC, LC_ALL=C.UTF-8 and TRAIND_SOCKET; later ones win. */
void run_start(struct run *run, const char *socket, const char *command,
               const char *const *environment);
/* The same on a terminal of 80 x 24, its controlling terminal. */
void run_start_terminal(struct run *run, const char *socket, const char *command,
                        const char *const *environment);
/* Reads until `wanted` was seen; fails the test if the output ends before. */
void run_until(struct run *run, const char *wanted);
void run_write(struct run *run, const char *text);
/* Reads to the end of the output and waits for its exit. */
void run_finish(struct run *run);

/* start and finish through pipes, with `input` on standard input. Returns the exit status. */
int run_command(struct run *run, const char *socket, const char *command, const char *input);

#endif
