/* shim_run.h: runs the real traind-shim on small real programs, for the checks of the shim and of
 * what stands on it. Every wait is for an event, and bounded: a check that waits longer fails. */
#ifndef TESTS_DAEMON_SHIM_RUN_H
#define TESTS_DAEMON_SHIM_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SHIM_RUN_BOUND_MS = 20000 };

struct shim_run {
    pid_t pid;
    bool outlives; /* else a shim that is still there when its starter ends is killed */
    char dir[4096];
};

/* The path of a program of the build, absolute: "daemon/traind-shim". */
const char *build_path(const char *program, char buf[static 4096]);

/* Makes the job's directory with its document in the scratch directory. */
void shim_run_init(struct shim_run *run, const char *document);
/* Starts the shim with `options` (NULL: none) beside --dir and --id 7, and "/" as the directory of
 * the job unless they say otherwise. Both lists end with NULL. */
void shim_run_start(struct shim_run *run, const char *const *options, const char *const *program);
/* The same for a line of sh. */
void shim_run_sh(struct shim_run *run, const char *const *options, const char *script);
/* Waits for the end of the shim and returns its exit status. */
int shim_run_wait(struct shim_run *run);

/* A file of the job's directory, NUL-terminated, to be freed; fails the check if it is absent. */
char *shim_run_file(const struct shim_run *run, const char *name, size_t *ret_size);
/* Waits until the file contains `text`. */
void shim_run_await(const struct shim_run *run, const char *name, const char *text);
/* exit.json, a new reference. */
json_t *shim_run_exit(const struct shim_run *run);
/* Checks reason, status and signal (-1: null) of exit.json; returns its message, to be freed. */
char *shim_run_expect(const struct shim_run *run, const char *reason, int status, int sig);

/* Waits until the process is gone (or a zombie). */
void process_await_end(pid_t pid);

#endif
