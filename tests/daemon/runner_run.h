/* runner_run.h: a real runner on a loop of its own for the checks of one, and what it tells. */
#ifndef TESTS_DAEMON_RUNNER_RUN_H
#define TESTS_DAEMON_RUNNER_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/runner.h"

enum { ID = 7 }; /* of every job */

/* What the runner has told so far. */
struct told {
    int n_started, n_reports, n_ended, n_gone, n_probed, n_alarms, n_closed;
    int reports_at_end;
    bool started_first, ran;
    char reports[65536];
    int64_t next, log_size;
    struct runner_exit record;
    struct err why;
    struct inventory *inventory;
};
extern struct told told;

extern uv_loop_t loop;
extern struct runner *runner;
extern char dir[4096]; /* the job's */

/* A fixture: a runner without a worker, and a scratch directory. */
void runner_run_setup(void);
void runner_run_teardown(void);

/* A new runner that has told nothing yet. */
void runner_run_open(const char *worker);
/* Closes it, and fails the test if it forgot a handle. */
void runner_run_close(void);
/* Runs the loop until *counter reaches n. */
void runner_run_await(const int *counter, int n);

#endif
