/* main.c: traind's entry: settings, signals, the loop. Exit status: 0 stopped, 1 failed, 2 usage.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <uv.h>

#include "daemon/config.h"
#include "daemon/daemon.h"
#include "daemon/detach.h"
#include "daemon/log.h"
#include "proto/descriptors.h"
#include <config.h>

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};
enum { DESCRIPTORS = 4096 };
enum { N_SIGNALS = sizeof stop_signals / sizeof stop_signals[0] };

static void on_signal(uv_signal_t *handle, int signum)
{
    log_info("signal %d: stopping; running jobs go on", signum);
    daemon_stop(handle->data);
}

/* Was it ignored when we were started (nohup, a shell's background job)? Then it stays so. */
static bool is_ignored(int signum)
{
    struct sigaction action;
    return sigaction(signum, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* The handles do not keep the loop alive: it ends when the daemon has closed its own. */
static void catch_signals(uv_loop_t *loop, uv_signal_t handles[N_SIGNALS], struct daemon *daemon)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file as large as it may be is like a full disk */
    for (int i = 0; i < N_SIGNALS; i++) {
        uv_signal_init(loop, &handles[i]);
        handles[i].data = daemon;
        if (!is_ignored(stop_signals[i]))
            uv_signal_start(&handles[i], on_signal, stop_signals[i]);
        uv_unref((uv_handle_t *)&handles[i]);
    }
}

/* Enough for all sessions and jobs; not more, for jobs inherit it. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= DESCRIPTORS)
        return;
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void on_closed(void *owner)
{
    (void)owner;
}

/* `ready_fd`: detach.h's, or -1. */
static int serve(const struct config *config, int ready_fd, struct err *err)
{
    uv_loop_t loop;
    uv_signal_t signals[N_SIGNALS];
    struct runner *runner = NULL;
    struct daemon *daemon = NULL;
    int status = 0;
    if (uv_loop_init(&loop) != 0)
        return err_set(err, ERR_IO, "the event loop cannot be set up");
    int rc = runner_uv_new(&loop, config->shim, config->worker, &runner, err);
    if (rc == 0)
        rc = daemon_open(&loop, config, runner, &daemon, err);
    if (rc == 0) {
        daemon->ready_fd = ready_fd;
        catch_signals(&loop, signals, daemon);
        daemon_start(daemon);
        uv_run(&loop, UV_RUN_DEFAULT);
        status = daemon_free(daemon);
        for (int i = 0; i < N_SIGNALS; i++)
            uv_close((uv_handle_t *)&signals[i], NULL);
    } else if (runner != NULL) {
        runner->close(runner, on_closed);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return rc != 0 ? rc : status;
}

/* What --help and its like have printed. */
static int flush(struct err *err)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return err_errno(err, errno, "cannot write to standard output");
    return 0;
}

static int serve_detached(const struct config *config, struct err *err)
{
    char log[PATH_MAX];
    pid_t pid;
    int fd;
    int rc = detach(&pid, &fd, err);
    if (rc != 0)
        return rc;
    if (pid == 0)
        return serve(config, fd, err);
    rc = detach_wait(pid, fd);
    if (rc == 0)
        printf("traind is process %d; its log is %s; kill %d ends it, and running jobs go on\n",
               pid, detach_log(config->state, log, sizeof log), pid);
    return rc;
}

int main(int argc, char **argv)
{
    struct config config;
    struct err err = ERR_INIT;
    if (descriptors_reserve() != 0)
        return EXIT_FAILURE;
    umask(077);
    int rc = config_read(argc, argv, &config, &err);
    if (rc == 0 && !config.show_help && !config.show_version)
        rc = config_check_programs(&config, &err);
    if (rc == 0 && config.show_help)
        fputs(config_usage(), stdout);
    else if (rc == 0 && config.show_version)
        puts("traind " PACKAGE_VERSION);
    else if (rc == 0 && config.check_only)
        config_print(&config);
    else if (rc == 0) {
        raise_descriptor_limit();
        rc = config.detach ? serve_detached(&config, &err) : serve(&config, -1, &err);
    }
    if (rc == 0)
        rc = flush(&err);
    config_done(&config);
    if (rc == ERR_USAGE) /* to whoever typed it, not to the log */
        fprintf(stderr, "traind: %s\n", err.message);
    else if (rc < 0)
        log_error("%s", err.message);
    return rc < 0 ? err_exit_status(rc) : rc;
}
