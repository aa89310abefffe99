/* detach.c: see detach.h. Until the daemon serves its standard error is the command's, so that what
 * keeps it from serving is seen. */
#define _GNU_SOURCE /* pipe2 */
#include "daemon/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Standard input and output of something that has no terminal. */
static int leave_terminal(struct err *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return err_errno(err, errno, "cannot open /dev/null");
    if (setsid() < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) {
        int rc = err_errno(err, errno, "cannot leave the terminal");
        close(null);
        return rc;
    }
    close(null);
    return 0;
}

int detach(pid_t *ret_pid, int *ret_fd, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, errno, "cannot make a pipe");
    pid_t pid = fork();
    if (pid < 0) {
        int rc = err_errno(err, errno, "cannot start a process");
        close(ends[0]);
        close(ends[1]);
        return rc;
    }
    close(ends[pid == 0 ? 0 : 1]);
    *ret_pid = pid;
    *ret_fd = ends[pid == 0 ? 1 : 0];
    return pid == 0 ? leave_terminal(err) : 0;
}

int detach_wait(pid_t pid, int fd)
{
    char byte;
    int status = 0;
    ssize_t n;
    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    close(fd);
    if (n == 1)
        return 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1;
}

const char *detach_log(const char *state, char *buf, size_t size)
{
    snprintf(buf, size, "%s/traind.log", state);
    return buf;
}

int detach_ready(int fd, const char *state, struct err *err)
{
    char path[PATH_MAX];
    if (fd < 0)
        return 0;
    int log = open(detach_log(state, path, sizeof path),
                   O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (log < 0 || dup2(log, STDERR_FILENO) < 0) {
        err_errno(err, errno, "cannot write %s", path);
        if (log >= 0)
            close(log);
        close(fd);
        return ERR_IO;
    }
    close(log);
    ssize_t told = write(fd, "", 1);
    (void)told; /* a parent that is gone waits for nothing */
    close(fd);
    return 0;
}
