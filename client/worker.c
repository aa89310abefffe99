/* worker.c: see worker.h. The worker's standard streams are three unnamed files, so that neither
 * side ever waits for the other. */
#include "client/worker.h"

#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/json.h"
#include "proto/report.h"

extern char **environ;

enum { OUTPUT_MOST = 16 << 20, STREAMS = 3, WORDS_MOST = 9 };

/* In a build tree the one built beside this, else the installed one; false if neither can be run.
 */
static bool find(char *buf, size_t size)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        char *folder = dirname(self);
        const char *name = strrchr(folder, '/');
        if (name != NULL && strcmp(name, "/client") == 0) { /* a build tree */
            int length = snprintf(buf, size, "%.*s/engine/worker/traind-worker",
                                  (int)(name - folder), folder);
            if (length > 0 && (size_t)length < size && access(buf, X_OK) == 0)
                return true;
        }
    }
    return snprintf(buf, size, "%s", TRAIND_LIBEXECDIR "/traind-worker") < (int)size &&
           access(buf, X_OK) == 0;
}

bool worker_exists(void)
{
    char program[PATH_MAX];
    return find(program, sizeof program);
}

static int run(const char *program, char *const *argv, FILE *const *streams, int *ret_status,
               struct err *err)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    unsetenv("TRAIND_REPORT_FD"); /* inside a job: its reports are not ours */
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return err_errno(err, rc, "cannot start %s", program);
    for (int fd = 0; fd < STREAMS && rc == 0; fd++)
        rc = posix_spawn_file_actions_adddup2(&actions, fileno(streams[fd]), fd);
    if (rc == 0)
        rc = posix_spawn(&pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        return err_errno(err, rc, "cannot start %s", program);
    while (waitpid(pid, ret_status, 0) < 0)
        if (errno != EINTR)
            return err_errno(err, errno, "waitpid");
    return 0;
}

/* All of a stream, NUL-terminated, to be freed; NULL without memory or when there is too much. */
static char *slurp(FILE *stream, size_t *ret_size)
{
    long size = fseek(stream, 0, SEEK_END) == 0 ? ftell(stream) : -1;
    char *text = size >= 0 && size <= OUTPUT_MOST ? malloc((size_t)size + 1) : NULL;
    if (text == NULL)
        return NULL;
    rewind(stream);
    *ret_size = fread(text, 1, (size_t)size, stream);
    text[*ret_size] = '\0';
    return text;
}

/* The last line, without its newline. */
static char *last_line(char *text, size_t size)
{
    while (size > 0 && text[size - 1] == '\n')
        text[--size] = '\0';
    char *newline = strrchr(text, '\n');
    return newline != NULL ? newline + 1 : text;
}

/* Why a worker failed: its report, else its last words, else how it ended. */
static int read_failure(char *out, size_t out_size, char *errors, size_t errors_size, int status,
                        struct err *err)
{
    struct report report;
    struct err unreadable = ERR_INIT;
    const char *line = last_line(out, out_size);
    if (report_parse(line, strlen(line), &report, &unreadable) == 0) {
        bool failed = report.type == REPORT_FAILED;
        if (failed)
            *err = report.err;
        report_done(&report);
        if (failed)
            return err->code;
    }
    line = last_line(errors, errors_size);
    if (WIFSIGNALED(status))
        return err_set(err, ERR_INTERNAL, "traind-worker was killed by signal %d%s%s",
                       WTERMSIG(status), line[0] != '\0' ? ": " : "", line);
    return err_set(err, ERR_INTERNAL, "traind-worker ended with status %d%s%s", WEXITSTATUS(status),
                   line[0] != '\0' ? ": " : "", line);
}

static int read_result(FILE *const *streams, int status, json_t **ret_result, struct err *err)
{
    size_t out_size = 0, errors_size = 0;
    int rc;
    char *out = slurp(streams[STDOUT_FILENO], &out_size);
    char *errors = slurp(streams[STDERR_FILENO], &errors_size);
    if (out == NULL || errors == NULL)
        rc = err_set(err, ERR_NOMEM, "out of memory");
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        rc = json_load(out, out_size, ERR_PARSE, ret_result, err);
    else
        rc = read_failure(out, out_size, errors, errors_size, status, err);
    free(out);
    free(errors);
    return rc;
}

/* Standard input of the worker: all of `input`, to be read from its start. */
static int fill(FILE *stream, const char *input, size_t size, struct err *err)
{
    if (fwrite(input, 1, size, stream) != size || fflush(stream) != 0)
        return err_errno(err, errno, "cannot write a temporary file");
    rewind(stream);
    return 0;
}

static int call(const char *program, char *const *argv, const char *input, size_t size,
                json_t **ret_result, struct err *err)
{
    FILE *streams[STREAMS] = {tmpfile(), tmpfile(), tmpfile()};
    int status = 0, rc = 0;
    for (int i = 0; i < STREAMS; i++)
        if (streams[i] == NULL)
            rc = err_errno(err, errno, "cannot make a temporary file");
    if (rc == 0)
        rc = fill(streams[STDIN_FILENO], input, size, err);
    if (rc == 0)
        rc = run(program, argv, streams, &status, err);
    if (rc == 0)
        rc = read_result(streams, status, ret_result, err);
    for (int i = 0; i < STREAMS; i++)
        if (streams[i] != NULL)
            fclose(streams[i]);
    return rc;
}

int worker_call(const char *const *words, size_t n_words, const char *input, size_t size,
                json_t **ret_result, struct err *err)
{
    char program[PATH_MAX];
    const char *argv[WORDS_MOST + 3] = {"traind-worker", words[0], "--json"};
    assert(n_words <= WORDS_MOST);
    if (!find(program, sizeof program))
        return err_set(err, ERR_IO, "this needs traind-worker, and there is none at %s",
                       TRAIND_LIBEXECDIR "/traind-worker");
    memcpy(argv + 3, words + 1, (n_words - 1) * sizeof *words);
    /* posix_spawn does not write to the strings */
    return call(program, (char *const *)argv, input, size, ret_result, err);
}
