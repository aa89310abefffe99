#include "tests/daemon/runner_run.h"

#include <stdio.h>
#include <string.h>

#include "tests/daemon/shim_run.h"
#include "tests/lib/checks.h"

struct told told;
uv_loop_t loop;
struct runner *runner;
char dir[4096];

/* Each event ends the turn of the loop: a turn with nothing else to do would wait for the bound. */
static void count(int *counter)
{
    ++*counter;
    uv_stop(&loop);
}

static void on_started(void *owner, int64_t id)
{
    ck_assert_ptr_eq(owner, &told);
    ck_assert_int_eq(id, ID);
    count(&told.n_started);
    told.started_first = told.n_reports == 0;
}

static void on_report(void *owner, int64_t id, const char *line, size_t size, int64_t next)
{
    (void)owner;
    ck_assert_int_eq(id, ID);
    ck_assert_int_eq(told.n_ended + told.n_gone, 0);
    size_t used = strlen(told.reports);
    if (used + size + 2 < sizeof told.reports)
        snprintf(told.reports + used, sizeof told.reports - used, "%.*s|", (int)size, line);
    count(&told.n_reports);
    told.next = next;
}

static void on_log_grew(void *owner, int64_t id, int64_t size)
{
    (void)owner;
    (void)id;
    told.log_size = size;
}

static void on_ended(void *owner, int64_t id, const struct runner_exit *record)
{
    (void)owner;
    ck_assert_int_eq(id, ID);
    count(&told.n_ended);
    told.record = *record;
}

static void on_gone(void *owner, int64_t id, bool ran, const struct err *why)
{
    (void)owner;
    ck_assert_int_eq(id, ID);
    count(&told.n_gone);
    told.ran = ran;
    told.why = *why;
}

static void on_probed(void *owner, struct inventory *inventory, const struct err *why)
{
    (void)owner;
    count(&told.n_probed);
    told.inventory = inventory;
    if (inventory == NULL)
        told.why = *why;
}

static void on_alarm(void *owner)
{
    (void)owner;
    count(&told.n_alarms);
}

static void on_closed(void *owner)
{
    ck_assert_ptr_eq(owner, &told);
    told.n_closed++;
}

static const struct runner_events events = {on_started, on_report, on_log_grew, on_ended,
                                            on_gone,    on_probed, on_alarm};

void runner_run_open(const char *worker)
{
    static char shim[4096];
    struct err err = ERR_INIT;
    memset(&told, 0, sizeof told);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    int rc = runner_uv_new(&loop, build_path("daemon/traind-shim", shim), worker, &runner, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    runner->events = &events;
    runner->owner = &told;
}

void runner_run_close(void)
{
    runner->close(runner, on_closed);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(told.n_closed, 1);
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* no handle was forgotten */
}

void runner_run_setup(void)
{
    snprintf(dir, sizeof dir, "%s/job", checks_scratch());
    runner_run_open("/no/worker");
}

void runner_run_teardown(void)
{
    runner_run_close();
    checks_scratch_remove();
}

static void on_bound(uv_timer_t *timer)
{
    (void)timer;
    ck_abort_msg("the runner does not tell");
}

void runner_run_await(const int *counter, int n)
{
    uv_timer_t bound;
    uv_timer_init(&loop, &bound);
    uv_timer_start(&bound, on_bound, SHIM_RUN_BOUND_MS, 0);
    while (*counter < n)
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&bound, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
}
