/* shim_child.c: from a copy of the shim to the user's program, in one fixed order.
 *
 * The order is the table `steps`: what needs root comes before the ids are given up, what must hold
 * for the user's code (no_new_privs, the parent-death signal, which a change of ids clears) after
 * it, and the directory is entered with the user's rights. A step that fails ends the child; its
 * index and errno reach the parent over a close-on-exec pipe, whose bare end means success.
 */
#define _GNU_SOURCE
#include "daemon/shim_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/limits.h"

/* Above the default of daemons and sessions, below those who volunteer to be killed first. */
enum { OOM_SCORE = 500 };

struct child {
    const struct shim_options *options;
    struct shim_child_fds fds;
    int status_fd;
    pid_t parent;
    char **environment; /* NULL-terminated, n_environment set */
    size_t n_environment;
};

struct fault {
    size_t step;
    int errnum;
};

/* The shim blocks and ignores signals; both would survive an exec. */
static int reset_signals(struct child *child)
{
    (void)child;
    for (int sig = 1; sig < NSIG; sig++) {
        if (sig != SIGKILL && sig != SIGSTOP && signal(sig, SIG_DFL) == SIG_ERR && errno != EINVAL)
            return errno;
    }
    sigset_t none;
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? errno : 0;
}

/* Sets "NAME=VALUE"; a later one of the same name wins. The array has room for all that are set. */
static void environment_set(struct child *child, char *entry)
{
    size_t name = strcspn(entry, "=") + 1;
    size_t at = 0;
    while (at < child->n_environment && strncmp(child->environment[at], entry, name) != 0)
        at++;
    child->environment[at] = entry;
    if (at == child->n_environment)
        child->n_environment++;
}

static int environment_format(struct child *child, const char *name, const char *value)
{
    char *entry;
    if (asprintf(&entry, "%s=%s", name, value) < 0)
        return ENOMEM;
    environment_set(child, entry);
    return 0;
}

/* Nothing of the daemon's environment reaches the job. */
static int build_environment(struct child *child)
{
    const struct shim_options *options = child->options;
    uid_t uid = options->drop ? options->uid : getuid();
    const struct passwd *entry = getpwuid(uid); /* NULL: a uid without an account may run jobs */
    char number[32];
    snprintf(number, sizeof number, "%lu", (unsigned long)uid);
    const char *user = entry != NULL ? entry->pw_name : number;
    if (options->user != NULL)
        user = options->user;
    const char *home = entry != NULL && entry->pw_dir[0] != '\0' ? entry->pw_dir : "/";
    const char *shell = entry != NULL && entry->pw_shell[0] != '\0' ? entry->pw_shell : "/bin/sh";
    const struct {
        const char *name, *value;
    } before[] = {
        {"PATH", "/usr/local/bin:/usr/bin:/bin"},
        {"HOME", home},
        {"USER", user},
        {"LOGNAME", user},
        {"SHELL", shell},
        {"LANG", "C.UTF-8"},
    };
    const size_t n_before = sizeof before / sizeof *before;
    child->environment = calloc(n_before + options->n_env + 3, sizeof *child->environment);
    if (child->environment == NULL)
        return ENOMEM;
    int errnum = 0;
    for (size_t i = 0; i < n_before && errnum == 0; i++)
        errnum = environment_format(child, before[i].name, before[i].value);
    for (size_t i = 0; i < options->n_env && errnum == 0; i++)
        environment_set(child, options->env[i]);
    if (errnum == 0)
        errnum = environment_format(child, "TRAIND_JOB_ID", options->id);
    if (errnum == 0)
        errnum = environment_format(child, "TRAIND_REPORT_FD", "3");
    return errnum;
}

static int new_session(struct child *child)
{
    (void)child;
    return setsid() < 0 ? errno : 0;
}

/* While still root: after the change of ids /proc/self belongs to root. Never lowered, which needs
 * rights that an ordinary user's shim does not have. */
static int raise_oom_score(struct child *child)
{
    (void)child;
    char score[16];
    int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, score, sizeof score - 1);
    if (n >= 0) {
        score[n] = '\0';
        if (atoi(score) < OOM_SCORE)
            n = dprintf(fd, "%d", OOM_SCORE);
    }
    int errnum = n < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return errnum;
}

/* A crash must not write the model's gigabytes to the user's directory; the user may raise it. */
static int set_rlimits(struct child *child)
{
    (void)child;
    struct rlimit core;
    if (getrlimit(RLIMIT_CORE, &core) < 0)
        return errno;
    core.rlim_cur = 0;
    return setrlimit(RLIMIT_CORE, &core) < 0 ? errno : 0;
}

static int set_umask(struct child *child)
{
    (void)child;
    umask(022);
    return 0;
}

static int take_groups(struct child *child)
{
    const struct shim_options *options = child->options;
    if (!options->drop)
        return 0;
    int rc = options->user != NULL ? initgroups(options->user, options->gid)
                                   : setgroups(1, &options->gid);
    return rc < 0 ? errno : 0;
}

static int take_gid(struct child *child)
{
    const struct shim_options *options = child->options;
    if (!options->drop)
        return 0;
    return setresgid(options->gid, options->gid, options->gid) < 0 ? errno : 0;
}

static int take_uid(struct child *child)
{
    const struct shim_options *options = child->options;
    if (!options->drop)
        return 0;
    return setresuid(options->uid, options->uid, options->uid) < 0 ? errno : 0;
}

/* The calls above may succeed and yet leave a way back (securebits, kept capabilities): try it. */
static int verify_dropped(struct child *child)
{
    const struct shim_options *options = child->options;
    if (!options->drop)
        return 0;
    uid_t uid[3];
    gid_t gid[3];
    if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0)
        return errno;
    for (int i = 0; i < 3; i++) {
        if (uid[i] != options->uid || gid[i] != options->gid)
            return EPERM;
    }
    if (options->uid == 0)
        return 0;
    if (setresuid(0, 0, 0) == 0 || seteuid(0) == 0)
        return EPERM;
    if (options->gid != 0 && (setresgid(0, 0, 0) == 0 || setegid(0) == 0))
        return EPERM;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    memset(caps, 0, sizeof caps);
    if (syscall(SYS_capget, &header, caps) < 0)
        return errno;
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        if (caps[i].permitted != 0 || caps[i].effective != 0)
            return EPERM;
    }
    return 0;
}

static int forbid_new_rights(struct child *child)
{
    (void)child;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? errno : 0;
}

static int die_with_parent(struct child *child)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return errno;
    /* A parent that died before the call sends nothing any more. */
    return getppid() != child->parent ? ESRCH : 0;
}

static int enter_directory(struct child *child)
{
    return chdir(child->options->cwd) < 0 ? errno : 0;
}

static int keep_descriptors(struct child *child)
{
    if (dup2(child->fds.document, 0) < 0 || dup2(child->fds.log, 1) < 0 ||
        dup2(child->fds.log, 2) < 0 || dup2(child->fds.report, 3) < 0)
        return errno;
    if (child->status_fd != CHILD_FIRST_FREE_FD) {
        if (dup3(child->status_fd, CHILD_FIRST_FREE_FD, O_CLOEXEC) < 0)
            return errno;
        child->status_fd = CHILD_FIRST_FREE_FD;
    }
    return syscall(SYS_close_range, CHILD_FIRST_FREE_FD + 1, ~0U, 0) < 0 ? errno : 0;
}

static int run_program(struct child *child)
{
    environ = child->environment; /* execvp looks for the program in the job's PATH */
    execvp(child->options->program[0], child->options->program);
    return errno;
}

static const struct step {
    const char *what;
    int (*run)(struct child *child); /* 0 or an errno */
} steps[] = {
    {"resetting signals", reset_signals},
    {"building the environment", build_environment},
    {"making a session", new_session},
    {"setting oom_score_adj", raise_oom_score},
    {"setting resource limits", set_rlimits},
    {"setting the umask", set_umask},
    {"taking the user's groups", take_groups},
    {"taking the user's group id", take_gid},
    {"taking the user's id", take_uid},
    {"verifying that root cannot come back", verify_dropped},
    {"setting no_new_privs", forbid_new_rights},
    {"setting the parent-death signal", die_with_parent},
    {"entering the working directory", enter_directory},
    {"keeping the job's descriptors only", keep_descriptors},
    {"running the program", run_program},
};
static const size_t N_STEPS = sizeof steps / sizeof *steps;

_Noreturn static void child_main(struct child *child)
{
    struct fault fault = {0, 0};
    while (fault.step < N_STEPS && (fault.errnum = steps[fault.step].run(child)) == 0)
        fault.step++;
    /* Nobody to tell if this fails: the parent is gone then. */
    ssize_t n = write(child->status_fd, &fault, sizeof fault);
    _exit(n == sizeof fault ? 127 : 126);
}

pid_t shim_child_start(const struct shim_options *options, const struct shim_child_fds *fds,
                       int *ret_status_fd)
{
    int status[2];
    if (pipe2(status, O_CLOEXEC) < 0)
        return -1;
    struct child child = {
        .options = options, .fds = *fds, .status_fd = status[1], .parent = getpid()};
    pid_t pid = fcntl(status[0], F_SETFL, O_NONBLOCK) < 0 ? -1 : fork();
    if (pid == 0)
        child_main(&child);
    int errnum = errno;
    close(status[1]);
    if (pid < 0)
        close(status[0]);
    else
        *ret_status_fd = status[0];
    errno = errnum;
    return pid;
}

/* What a step was about, where its name does not say it. */
static const char *step_object(const struct shim_options *options, const struct step *step)
{
    if (step->run == enter_directory)
        return options->cwd;
    return step->run == run_program ? options->program[0] : "";
}

enum shim_child_state shim_child_status(const struct shim_options *options, int status_fd,
                                        char *message, size_t size)
{
    struct fault fault;
    ssize_t n = read(status_fd, &fault, sizeof fault);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return CHILD_STARTING;
    if (n == 0)
        return CHILD_RUNNING;
    if (n != sizeof fault || fault.step >= N_STEPS) {
        snprintf(message, size, "the job could not be started");
        return CHILD_FAILED;
    }
    const char *object = step_object(options, &steps[fault.step]);
    snprintf(message, size, "the job could not be started: %s%s%s: %s", steps[fault.step].what,
             object[0] != '\0' ? " " : "", object, strerror(fault.errnum));
    return CHILD_FAILED;
}
