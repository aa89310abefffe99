/* shim.c: traind-shim, which keeps one job's process while daemons come and go.
 *
 *     starting ──exec──► running ──► ended: the job's process is dead, its leftovers are being
 *        │                 │         killed ──no child left──► recorded: exit.json is there
 *        └──step failed────┴──────►
 *
 * One poll loop over a signalfd (SIGCHLD, SIGTERM), the child's status pipe, and the job's report
 * and log pipes; with nothing to do it sleeps without a timeout. Deadlines (the grace after SIGTERM
 * or after the reports' end) are times of the monotonic clock.
 *
 * It fails before the job runs (usage, no directory: exit status 2, a line on standard error), or
 * else always leaves exit.json: what cannot be written is tried again until there is room. The
 * contract is doc/processes.md.
 */
#define _GNU_SOURCE
#include "daemon/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/shim_child.h"
#include "daemon/shim_oom.h"
#include "daemon/shim_options.h"
#include "daemon/shim_pipes.h"
#include "daemon/shim_reap.h"
#include "daemon/shim_record.h"

#define SECOND_NS INT64_C(1000000000)

struct shim {
    struct shim_options options;
    int dir_fd, signal_fd;
    int status_fd; /* -1: the child has become the program, or failed */
    pid_t job;     /* 0: none was started */
    bool ended;    /* the job's process is dead; its leftovers may live */
    bool childless;
    bool stopping; /* SIGTERM has come */
    bool hung;     /* killed for not ending after it closed its reports */
    bool exec_failed;
    bool killed;     /* by us */
    int64_t kill_ns; /* when the group is killed */
    struct shim_oom oom;
    struct shim_log log;
    struct shim_reports reports;
    struct shim_exit exit;
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * SECOND_NS + ts.tv_nsec;
}

int64_t shim_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* Descriptors 0 to 3 are taken (3 is the job's lock, inherited from the daemon) and all others
 * closed, so that nothing of the starter leaks and no pipe of ours gets a number of the job's. */
static bool reserve_descriptors(void)
{
    if (syscall(SYS_close_range, CHILD_FIRST_FREE_FD, ~0U, 0) < 0)
        return false;
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd < CHILD_FIRST_FREE_FD);
    if (fd < 0)
        return false;
    close(fd);
    return fcntl(CHILD_FIRST_FREE_FD - 1, F_SETFD, FD_CLOEXEC) == 0;
}

/* Only SIGCHLD and SIGTERM mean anything to us; what else can be ignored is. */
static int open_signals(void)
{
    static const int ignored[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGALRM, SIGUSR1,
                                  SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would reap the job before we look */
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGTERM);
    if (sigprocmask(SIG_SETMASK, &mask, NULL) < 0)
        return -1;
    return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* What must succeed before there can be a record of anything. */
static bool prepare(struct shim *shim)
{
    const char *failed = NULL;
    umask(077);
    if (!reserve_descriptors())
        failed = "descriptors";
    else if ((shim->signal_fd = open_signals()) < 0)
        failed = "signals";
    else if (setsid() < 0 && getsid(0) != getpid())
        failed = "setsid";
    else if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        failed = "subreaper";
    else if ((shim->dir_fd = open(shim->options.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        failed = shim->options.dir;
    else if (chdir("/") < 0) /* do not keep a file system busy */
        failed = "/";
    if (failed != NULL)
        fprintf(stderr, "traind-shim: %s: %s\n", failed, strerror(errno));
    return failed == NULL;
}

/* The document as a file that nobody can change and that has no name. */
static int open_document(int dir_fd)
{
    int from = openat(dir_fd, "job.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int fd = from < 0 ? -1 : memfd_create("job.json", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ssize_t n = fd < 0 ? -1 : 0;
    char buf[16 << 10];
    while (fd >= 0 && (n = read(from, buf, sizeof buf)) > 0) {
        if (write(fd, buf, (size_t)n) != n) {
            n = -1;
            break;
        }
    }
    if (n == 0 &&
        (lseek(fd, 0, SEEK_SET) < 0 ||
         fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0))
        n = -1;
    int errnum = errno;
    if (from >= 0)
        close(from);
    if (n != 0 && fd >= 0)
        close(fd);
    errno = errnum;
    return n == 0 ? fd : -1;
}

/* A pipe whose reading end does not block. In root mode it belongs to the job's user, who may open
 * /dev/stdout then. */
static bool open_pipe(const struct shim_options *options, int ret_ends[2])
{
    if (pipe2(ret_ends, O_CLOEXEC) < 0)
        return false;
    if (fcntl(ret_ends[0], F_SETFL, O_NONBLOCK) == 0 &&
        (!options->drop || fchown(ret_ends[1], options->uid, options->gid) == 0))
        return true;
    int errnum = errno;
    close(ret_ends[0]);
    close(ret_ends[1]);
    errno = errnum;
    return false;
}

static void fail_start(struct shim *shim, const char *what, int errnum)
{
    shim->exec_failed = true;
    snprintf(shim->exit.message, sizeof shim->exit.message, "the job could not be started: %s: %s",
             what, strerror(errnum));
}

static void start_job(struct shim *shim)
{
    struct shim_child_fds fds = {-1, -1, -1};
    int log[2] = {-1, -1}, report[2] = {-1, -1};
    const char *failed = NULL;
    shim_oom_start(&shim->oom);
    if ((errno = shim_record_shim(shim->dir_fd)) != 0)
        failed = "shim.json";
    else if ((fds.document = open_document(shim->dir_fd)) < 0)
        failed = "job.json";
    else if (!open_pipe(&shim->options, log) || !open_pipe(&shim->options, report))
        failed = "pipe";
    else if ((errno = shim_log_open(&shim->log, shim->dir_fd, log[0])) != 0)
        failed = "log";
    else if ((errno = shim_reports_open(&shim->reports, shim->dir_fd, report[0])) != 0)
        failed = "report.jsonl";
    if (failed == NULL) {
        fds.log = log[1];
        fds.report = report[1];
        shim->job = shim_child_start(&shim->options, &fds, &shim->status_fd);
        if (shim->job < 0)
            failed = "fork";
    }
    if (failed != NULL) {
        fail_start(shim, failed, errno);
        shim->job = 0;
        shim->ended = shim->childless = true;
    }
    const int job_ends[] = {fds.document, log[1], report[1]};
    for (size_t i = 0; i < sizeof job_ends / sizeof *job_ends; i++) {
        if (job_ends[i] >= 0)
            close(job_ends[i]);
    }
}

/* The group exists once the child is past setsid; before, there is only the child. Safe against a
 * reused number: the job's process is not reaped before `ended`. */
static void signal_job(const struct shim *shim, int sig)
{
    if (shim->job > 0 && !shim->ended && kill(-shim->job, sig) < 0)
        kill(shim->job, sig);
}

static void stop_job(struct shim *shim, int64_t now_ns)
{
    if (shim->stopping || shim->ended)
        return;
    shim->stopping = true;
    shim->kill_ns = now_ns + shim->options.grace_ns;
    signal_job(shim, SIGTERM);
    signal_job(shim, SIGCONT); /* a stopped process would not hear it */
}

static void kill_job(struct shim *shim)
{
    shim->kill_ns = SHIM_NEVER;
    shim->killed = true;
    shim->hung = !shim->stopping;
    signal_job(shim, SIGKILL);
}

/* Records how the job's process ended; it stays a zombie until the sweep, which keeps the number of
 * its group ours. */
static void job_ended(struct shim *shim, const siginfo_t *info)
{
    signal_job(shim, SIGKILL);
    shim->ended = true;
    shim->kill_ns = SHIM_NEVER;
    shim->exit.ended_ns = clock_ns(CLOCK_REALTIME);
    shim->exit.oom_kills = shim_oom_kills(&shim->oom);
    if (info->si_code == CLD_EXITED)
        shim->exit.status = info->si_status;
    else
        shim->exit.signal = info->si_status;
}

/* Reaps orphans of the job while it runs, and notices its end. */
static void children_changed(struct shim *shim)
{
    while (!shim->ended) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
            return;
        if (info.si_pid == shim->job)
            job_ended(shim, &info);
        else
            waitpid(info.si_pid, NULL, 0);
    }
    if (!shim->childless)
        shim->childless = shim_reap();
}

static void signals_ready(struct shim *shim, int64_t now_ns)
{
    struct signalfd_siginfo info;
    while (read(shim->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGTERM)
            stop_job(shim, now_ns);
    }
    children_changed(shim);
}

static void status_ready(struct shim *shim)
{
    enum shim_child_state state = shim_child_status(&shim->options, shim->status_fd,
                                                    shim->exit.message, sizeof shim->exit.message);
    if (state == CHILD_STARTING)
        return;
    close(shim->status_fd);
    shim->status_fd = -1;
    shim->exec_failed = state == CHILD_FAILED;
    /* Only for people who look for the process: not worth failing a running job. */
    if (state == CHILD_RUNNING)
        (void)shim_record_worker(shim->dir_fd, shim->job);
}

static void reports_ready(struct shim *shim, int64_t now_ns)
{
    shim_reports_read(&shim->reports, SIZE_MAX, now_ns);
    if (shim->reports.pipe < 0 && shim->kill_ns == SHIM_NEVER && !shim->ended)
        shim->kill_ns = now_ns + shim->options.grace_ns;
}

static int timeout_ms(const struct shim *shim, int64_t now_ns)
{
    int64_t due = shim_reports_due(&shim->reports);
    if (shim->kill_ns < due)
        due = shim->kill_ns;
    if (due == SHIM_NEVER)
        return -1;
    int64_t ms = (due - now_ns + 999999) / 1000000;
    return ms < 0 ? 0 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static void run(struct shim *shim)
{
    while (!shim->childless) {
        struct pollfd fds[] = {
            {.fd = shim->signal_fd, .events = POLLIN},
            {.fd = shim->status_fd, .events = POLLIN},
            {.fd = shim->reports.pipe, .events = POLLIN},
            {.fd = shim->log.pipe, .events = POLLIN},
        };
        if (poll(fds, sizeof fds / sizeof *fds, timeout_ms(shim, shim_now_ns())) < 0)
            continue;
        int64_t now_ns = shim_now_ns();
        if (fds[1].revents != 0)
            status_ready(shim);
        if (fds[2].revents != 0)
            reports_ready(shim, now_ns);
        if (fds[3].revents != 0)
            shim_log_read(&shim->log, SIZE_MAX);
        if (fds[0].revents != 0)
            signals_ready(shim, now_ns);
        shim_reports_flush(&shim->reports, now_ns);
        if (now_ns >= shim->kill_ns)
            kill_job(shim);
    }
}

/* What the job had written when it ended. */
static void drain(struct shim *shim)
{
    size_t left = shim_pipe_rest(shim->reports.pipe), n;
    while (left > 0 && (n = shim_reports_read(&shim->reports, left, shim_now_ns())) > 0)
        left -= n;
    left = shim_pipe_rest(shim->log.pipe);
    while (left > 0 && (n = shim_log_read(&shim->log, left)) > 0)
        left -= n;
    if (shim->status_fd >= 0)
        status_ready(shim);
}

static void describe_end(struct shim_exit *end, bool killed, char *text, size_t size)
{
    if (end->signal == 0)
        snprintf(text, size, "exited with status %d", end->status);
    else
        snprintf(text, size, "%s by signal %d (%s)", killed ? "was killed" : "ended", end->signal,
                 strsignal(end->signal));
}

/* Chooses the reason; the first that holds is the one a user wants to hear. */
static void conclude(struct shim *shim)
{
    struct shim_exit *end = &shim->exit;
    char how[128];
    double grace = (double)shim->options.grace_ns / (double)SECOND_NS;
    describe_end(end, shim->killed, how, sizeof how);
    if (end->ended_ns == 0)
        end->ended_ns = clock_ns(CLOCK_REALTIME);
    if (shim->exec_failed) {
        end->status = -1; /* it was ours, not the program's */
        end->signal = 0;
        end->reason = shim->stopping ? SHIM_STOPPED : SHIM_EXEC_FAILED;
        return;
    }
    if (shim->stopping) {
        end->reason = SHIM_STOPPED;
        snprintf(end->message, sizeof end->message, "the job was asked to stop and %s", how);
    } else if (shim->hung) {
        end->reason = SHIM_HUNG;
        snprintf(end->message, sizeof end->message,
                 "the job closed its reports but did not end within %g s and was killed", grace);
    } else if (end->signal == SIGKILL && end->oom_kills > 0) {
        end->reason = SHIM_OOM;
        snprintf(end->message, sizeof end->message, "the kernel killed the job for want of memory");
    } else {
        end->reason = end->signal != 0 ? SHIM_SIGNALLED : SHIM_EXITED;
        snprintf(end->message, sizeof end->message, "the job %s", how);
    }
}

/* Tries until there is room on the disk, less and less often. A directory that was removed has
 * nobody to read the record. */
static int record_end(struct shim *shim)
{
    for (time_t pause_s = 1;; pause_s = pause_s < 30 ? 2 * pause_s : 30) {
        bool reports = shim->job == 0 || shim_reports_finish(&shim->reports);
        bool log = shim->job == 0 || shim_log_finish(&shim->log);
        int errnum = reports && log ? shim_record_exit(shim->dir_fd, &shim->exit) : ENOSPC;
        if (errnum == 0)
            return EXIT_SUCCESS;
        if (errnum == ENOENT)
            return EXIT_FAILURE;
        struct timespec pause = {.tv_sec = pause_s};
        nanosleep(&pause, NULL);
    }
}

int main(int argc, char **argv)
{
    static struct shim shim = {
        .status_fd = -1,
        .kill_ns = SHIM_NEVER,
        .log = {.pipe = -1},
        .reports = {.pipe = -1},
        .exit = {.status = -1},
    };
    if (!shim_options_parse(argc, argv, &shim.options) || !prepare(&shim))
        return 2;
    start_job(&shim);
    run(&shim);
    drain(&shim);
    conclude(&shim);
    return record_end(&shim);
}
