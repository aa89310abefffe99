/* runner_job.h: one job of the runner on libuv. Private to runner_uv.c and runner_job.c. */
#ifndef DAEMON_RUNNER_JOB_H
#define DAEMON_RUNNER_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/evidence.h"
#include "daemon/launch.h"
#include "daemon/probe.h"
#include "daemon/runner.h"
#include "daemon/tail.h"

enum { RUNNER_MAX_REFUSED = 64 };

struct runner_uv {
    struct runner base; /* first: a struct runner is cast to its runner_uv */
    uv_loop_t *loop;
    char *shim, *worker;
    struct runner_job *jobs;
    uv_timer_t alarm, refusals;
    uv_poll_t inotify;
    int inotify_fd;
    struct probe *probe;
    bool probe_refused;
    int64_t refused[RUNNER_MAX_REFUSED]; /* jobs that there was no memory for */
    size_t n_refused;
    size_t n_alive; /* jobs, handles and the probe that still have to close */
    bool closing;
    void (*closed)(void *owner);
    struct tail_buffer buffer;
};

enum runner_phase { PREPARING, WAITING, WATCHED, ENDING, CLOSING, PHASE_COUNT };

struct runner_job {
    struct runner_uv *runner;
    struct runner_job *next;
    enum runner_phase phase;
    int64_t id;
    char *dir;
    uv_work_t work;
    uv_timer_t timer; /* waiting: look again; watched, ending: go on */
    uv_poll_t poll;   /* on pidfd, if that is not negative */
    int n_handles;
    int pidfd, watch;
    pid_t child; /* 0: adopted, another reaps it */
    int64_t again_ms;
    bool started, stop_asked, dirty;
    int64_t log_size;
    struct tail tail;
    /* The thread pool's, while preparing. */
    struct runner_spec *spec; /* NULL: look for a shim */
    struct launch launch;
    enum evidence_shim evidence;
    struct err err; /* code 0: it went well */
};

/* Starts or adopts; false: no memory, and nothing has happened. */
bool runner_job_spawn(struct runner_uv *runner, const struct runner_spec *spec);
bool runner_job_adopt(struct runner_uv *runner, int64_t id, const char *dir, int64_t report_offset);
struct runner_job *runner_job_find(struct runner_uv *runner, int64_t id);
void runner_job_stop(struct runner_job *job);
/* Reads what is new in the job's directory and goes on from there; may deliver events, and free
 * nothing before the next turn of the loop. */
void runner_job_tick(struct runner_job *job);
/* Forgets the job: its id may be used again at once. */
void runner_job_close(struct runner_job *job);

/* One of runner->n_alive has closed; after the last the runner is freed. */
void runner_uv_release(struct runner_uv *runner);

#endif
