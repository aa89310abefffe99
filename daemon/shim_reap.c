/* shim_reap.c: kill and reap until the kernel says that there are no children.
 *
 * A number in /proc/self/task/TID/children cannot be reused under our hands: only we reap it.
 */
#include "daemon/shim_reap.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static int kill_children(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "re");
    if (children == NULL)
        return -1;
    int n = 0, pid;
    while (fscanf(children, "%d", &pid) == 1) {
        kill((pid_t)pid, SIGKILL);
        n++;
    }
    fclose(children);
    return n;
}

bool shim_reap(void)
{
    for (;;) {
        int n_killed = kill_children();
        int n_reaped = 0;
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            n_reaped++;
        if (pid < 0 && errno == ECHILD)
            return true;
        /* An empty list beside living children was read while a child was dying: look again. */
        if (n_killed != 0 && n_reaped == 0)
            return false;
    }
}
