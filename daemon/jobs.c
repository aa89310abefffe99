/* jobs.c: see jobs.h. Moves are written in the order of their decision, so a device that one job
 * gives up is never committed to the next before that. */
#include "daemon/jobs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/journal.h"
#include "daemon/limits.h"
#include "daemon/log.h"
#include "daemon/logs.h"
#include "daemon/statedir.h"
#include "daemon/store_thread.h"
#include "daemon/verdict.h"
#include "daemon/wait.h"
#include "daemon/watch.h"

enum { FLUSH_MS = 1000 };

static void out_of_memory(struct daemon *daemon)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_NOMEM, "out of memory");
    daemon_fail(daemon, &err);
}

/* Where `id` is or would be. */
static size_t position(const struct jobs *jobs, int64_t id)
{
    size_t low = 0, high = jobs->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (jobs->live[middle]->record->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct live *jobs_find(struct daemon *daemon, int64_t id)
{
    struct jobs *jobs = &daemon->jobs;
    size_t at = position(jobs, id);
    return at < jobs->n && jobs->live[at]->record->id == id ? jobs->live[at] : NULL;
}

bool jobs_holds(const struct live *live)
{
    return live->record->devices.n > 0 && live->record->state != STATE_QUEUED &&
           !state_ended(live->record->state);
}

struct live *jobs_holder(struct daemon *daemon, size_t device)
{
    for (size_t i = 0; i < daemon->jobs.n; i++) {
        struct live *live = daemon->jobs.live[i];
        if (jobs_holds(live) &&
            (devset_of(&daemon->devices, &live->record->devices) >> device & 1) != 0)
            return live;
    }
    return NULL;
}

int jobs_add(struct daemon *daemon, struct job_record *record, struct live **ret_live,
             struct err *err)
{
    struct jobs *jobs = &daemon->jobs;
    struct live *live = calloc(1, sizeof *live);
    if (live == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    if (jobs->n == jobs->room) {
        size_t room = jobs->room > 0 ? 2 * jobs->room : 64;
        struct live **more = realloc(jobs->live, room * sizeof(struct live *));
        if (more == NULL) {
            free(live);
            return err_set(err, ERR_NOMEM, "out of memory");
        }
        jobs->live = more;
        jobs->room = room;
    }
    size_t at = position(jobs, record->id);
    memmove(&jobs->live[at + 1], &jobs->live[at], (jobs->n - at) * sizeof(struct live *));
    jobs->live[at] = live;
    jobs->n++;
    live->record = record;
    if (jobs_holds(live))
        jobs->assigned |= devset_of(&daemon->devices, &record->devices);
    *ret_live = live;
    return 0;
}

static void live_free(struct live *live)
{
    job_record_free(live->record);
    after_clear(&live->after);
    free(live);
}

static void remove_live(struct jobs *jobs, int64_t id)
{
    size_t at = position(jobs, id);
    live_free(jobs->live[at]);
    jobs->n--;
    memmove(&jobs->live[at], &jobs->live[at + 1], (jobs->n - at) * sizeof(struct live *));
}

void jobs_done(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->jobs.n; i++)
        live_free(daemon->jobs.live[i]);
    free(daemon->jobs.live);
    daemon->jobs = (struct jobs){0};
}

/* ── A move, from decision to effect ── */

struct move {
    struct store_request base;
    struct daemon *daemon;
    struct job_record *record; /* as it is after the move */
    struct job_transition transition;
    char *document; /* of a job that is to be spawned */
    size_t document_size;
};

static int move_run(struct store_request *base, struct store *store, struct err *err)
{
    struct move *move = (struct move *)base;
    int rc = store_update_job(store, move->record, err);
    if (rc == 0)
        rc = store_insert_transition(store, &move->transition, err);
    if (rc != 0 || move->record->state != STATE_STARTING)
        return rc;
    free(move->document);
    move->document = NULL;
    return store_get_document(store, move->record->id, &move->document, &move->document_size, err);
}

static void move_free(struct move *move)
{
    if (move == NULL)
        return;
    job_record_free(move->record);
    job_transition_done(&move->transition);
    free(move->document);
    free(move);
}

static void spawn(struct daemon *daemon, struct live *live, const struct move *move)
{
    char dir[PATH_MAX], devices[LIMIT_DEVICES * 32], cpus[16];
    const struct job_record *record = live->record;
    size_t n_cpus = 0;
    for (size_t i = 0; i < daemon->devices.n; i++)
        n_cpus += daemon->devices.id[i].type == DEVICE_CPU;
    snprintf(cpus, sizeof cpus, "%zu", n_cpus);
    const char *argv[] = {daemon->config->worker,
                          "run",
                          "-",
                          "--devices",
                          devlist_format(&record->devices, devices, sizeof devices),
                          "--cpu-devices",
                          cpus,
                          "--output",
                          record->output,
                          NULL};
    struct runner_spec spec = {
        .id = record->id,
        .dir = statedir_job(daemon->config->state, record->id, NULL, dir, sizeof dir),
        .cwd = record->cwd,
        .drop = !daemon->config->user_mode,
        .uid = record->uid,
        .gid = record->gid,
        .grace_s = daemon->config->grace_s,
        .document = move->document,
        .document_size = move->document_size,
        .argv = argv,
    };
    live->opened = true;
    daemon->runner->spawn(daemon->runner, &spec);
}

static void effect_starting(struct daemon *daemon, struct live *live, const struct move *move)
{
    if (live->record->state == STATE_STARTING) {
        spawn(daemon, live, move);
        return;
    }
    /* Cancelled while this was being written: nothing has run, and its devices are free again. */
    jobs_move(daemon, live, STATE_CANCELLED, NULL, live->record->reason);
    jobs_schedule(daemon);
}

static void effect_stopping(struct daemon *daemon, struct live *live, const struct move *move)
{
    (void)move;
    if (live->opened)
        daemon->runner->stop(daemon->runner, live->record->id);
}

static void effect_ended(struct daemon *daemon, struct live *live, const struct move *move)
{
    (void)move;
    int64_t id = live->record->id;
    enum job_state state = live->record->state;
    remove_live(&daemon->jobs, id);
    logs_ended(daemon, id);
    after_ended(daemon, id, state);
}

/* What follows when a move to this state is committed. */
static void (*const effects[STATE_COUNT])(struct daemon *, struct live *, const struct move *) = {
    [STATE_STARTING] = effect_starting, [STATE_STOPPING] = effect_stopping,
    [STATE_COMPLETED] = effect_ended,   [STATE_FAILED] = effect_ended,
    [STATE_CANCELLED] = effect_ended,   [STATE_TIMED_OUT] = effect_ended,
    [STATE_LOST] = effect_ended,
};

static void move_done(struct store_request *base, const struct err *err)
{
    struct move *move = (struct move *)base;
    struct daemon *daemon = move->daemon;
    if (err->code == 0 && !daemon->stopping) {
        const struct job_record *record = move->record;
        log_info("job %lld: %s%s%s", (long long)record->id, state_name(record->state),
                 record->reason != NULL ? ": " : "", record->reason != NULL ? record->reason : "");
        watch_moved(daemon, record, &move->transition);
        wait_moved(daemon, record);
        struct live *live = jobs_find(daemon, record->id);
        if (live != NULL && effects[record->state] != NULL)
            effects[record->state](daemon, live, move);
    }
    move_free(move);
}

/* The request that writes what has been decided; NULL without memory. */
static struct move *move_new(struct daemon *daemon, const struct job_record *record,
                             enum job_state from, const uid_t *by, int64_t now_ns)
{
    struct move *move = calloc(1, sizeof *move);
    if (move == NULL || (move->record = job_record_copy(record)) == NULL ||
        (record->reason != NULL && (move->transition.reason = strdup(record->reason)) == NULL)) {
        move_free(move);
        return NULL;
    }
    move->base = (struct store_request){.kind = STORE_MUST, .run = move_run, .done = move_done};
    move->daemon = daemon;
    move->transition.id = record->id;
    move->transition.time_ns = now_ns;
    move->transition.from = from;
    move->transition.to = record->state;
    move->transition.by_user = by != NULL;
    move->transition.uid = by != NULL ? *by : 0;
    return move;
}

void jobs_move(struct daemon *daemon, struct live *live, enum job_state to, const uid_t *by,
               const char *reason)
{
    struct err err = ERR_INIT;
    struct job_record *record = live->record;
    enum job_state from = record->state;
    devset held = jobs_holds(live) ? devset_of(&daemon->devices, &record->devices) : 0;
    int64_t now_ns = daemon->runner->now_ns(daemon->runner);
    char *kept = reason != NULL ? strdup(reason) : NULL; /* it may be the record's own */
    if ((reason != NULL && kept == NULL) ||
        job_move(record, to, by != NULL ? ACTOR_USER : ACTOR_DAEMON, now_ns, kept, &err) != 0) {
        free(kept);
        if (err.code == 0)
            err_set(&err, ERR_NOMEM, "out of memory");
        daemon_fail(daemon, &err);
        return;
    }
    free(kept);
    if (state_ended(to) && usage_charge(daemon, record, &err) != 0) {
        daemon_fail(daemon, &err);
        return;
    }
    daemon->jobs.assigned &= ~held;
    if (jobs_holds(live))
        daemon->jobs.assigned |= devset_of(&daemon->devices, &record->devices);
    live->unsaved = false;
    struct move *move = move_new(daemon, record, from, by, now_ns);
    if (move != NULL)
        store_thread_submit(daemon->store, &move->base);
    else
        out_of_memory(daemon);
}

/* ── Decisions ── */

static char *replaced(char *text, const char *with)
{
    free(text);
    return strdup(with);
}

void jobs_cancel(struct daemon *daemon, struct live *live, uid_t by, const char *reason)
{
    if (live->record->state == STATE_STOPPING || state_ended(live->record->state))
        return; /* named twice */
    bool waits = live->record->state == STATE_QUEUED || live->record->state == STATE_HELD;
    jobs_move(daemon, live, waits ? STATE_CANCELLED : STATE_STOPPING, &by, reason);
    if (waits)
        jobs_schedule(daemon);
}

void jobs_hold(struct daemon *daemon, struct live *live, uid_t by, const char *reason)
{
    if (live->record->state != STATE_QUEUED)
        return;
    jobs_move(daemon, live, STATE_HELD, &by, reason);
    live->waits = false;
    jobs_schedule(daemon); /* it may have been the head */
}

void jobs_release(struct daemon *daemon, struct live *live, uid_t by, const char *reason)
{
    if (live->record->state != STATE_HELD)
        return;
    jobs_move(daemon, live, STATE_QUEUED, &by, reason);
    jobs_schedule(daemon);
}

void jobs_update(struct daemon *daemon, struct live *live, const struct jobs_patch *patch, uid_t by,
                 const char *reason)
{
    struct job_record *record = live->record;
    if (patch->prefers)
        record->priority = patch->priority;
    if (patch->limits)
        record->time_limit_s = patch->time_limit_s;
    struct move *move =
        move_new(daemon, record, record->state, &by, daemon->runner->now_ns(daemon->runner));
    if (move == NULL ||
        (move->transition.reason = replaced(move->transition.reason, reason)) == NULL) {
        move_free(move);
        out_of_memory(daemon);
        return;
    }
    live->unsaved = false;
    store_thread_submit(daemon->store, &move->base);
    limits_watch(daemon, live);
    jobs_schedule(daemon);
}

void jobs_give_up(struct daemon *daemon, struct live *live, enum job_state to,
                  const struct err *why)
{
    struct verdict verdict = {.state = to, .why = *why};
    json_t *exit = verdict_json(&verdict, NULL);
    if (exit == NULL) {
        out_of_memory(daemon);
        return;
    }
    json_decref(live->record->exit);
    live->record->exit = exit;
    jobs_move(daemon, live, to, NULL, why->message);
}

/* ── What the runner says ── */

static void on_started(void *owner, int64_t id)
{
    struct daemon *daemon = owner;
    struct live *live = jobs_find(daemon, id);
    if (live != NULL && live->record->state == STATE_STARTING)
        jobs_move(daemon, live, STATE_RUNNING, NULL, NULL);
    if (live != NULL)
        limits_watch(daemon, live);
}

static void mark_unsaved(struct daemon *daemon, struct live *live)
{
    live->unsaved = true;
    if (daemon->jobs.flush_at_ms == 0) {
        daemon->jobs.flush_at_ms = daemon->runner->clock_ms(daemon->runner) + FLUSH_MS;
        daemon_set_alarm(daemon);
    }
}

static void on_report(void *owner, int64_t id, const char *line, size_t size, int64_t next)
{
    struct daemon *daemon = owner;
    struct live *live = jobs_find(daemon, id);
    enum journal_news news = JOURNAL_NOTHING;
    struct err err = ERR_INIT;
    if (live == NULL)
        return;
    int rc = journal_enter(live->record, line, size, next, &news, &err);
    if (rc == ERR_NOMEM) {
        daemon_fail(daemon, &err);
        return;
    }
    if (rc != 0 && !live->refused)
        log_warning("job %lld: reports are refused: %s", (long long)id, err.message);
    live->refused |= rc != 0;
    mark_unsaved(daemon, live);
    if (news != JOURNAL_NOTHING)
        watch_news(daemon, live->record, news);
}

static void on_log_grew(void *owner, int64_t id, int64_t size)
{
    (void)size;
    logs_grew(owner, id);
}

static void on_ended(void *owner, int64_t id, const struct runner_exit *record)
{
    struct daemon *daemon = owner;
    struct live *live = jobs_find(daemon, id);
    struct verdict verdict;
    if (live == NULL)
        return;
    if (live->record->state == STATE_STARTING && record->reason != RUNNER_EXEC_FAILED)
        on_started(owner, id); /* it was over before we saw it run */
    verdict_reach(live->record, record, daemon->config->grace_s, &verdict);
    json_t *exit = verdict_json(&verdict, record);
    if (exit == NULL) {
        out_of_memory(daemon);
        return;
    }
    json_decref(live->record->exit);
    live->record->exit = exit;
    jobs_move(daemon, live, verdict.state, NULL,
              verdict.why.code != 0 ? verdict.why.message : NULL);
    jobs_schedule(daemon);
}

static void on_gone(void *owner, int64_t id, bool ran, const struct err *why)
{
    struct daemon *daemon = owner;
    struct live *live = jobs_find(daemon, id);
    if (live == NULL)
        return;
    live->opened = false;
    if (ran)
        jobs_give_up(daemon, live, STATE_LOST, why);
    else if (live->record->state == STATE_STOPPING)
        jobs_give_up(daemon, live, STATE_CANCELLED, why);
    else if (live->record->state == STATE_STARTING && live->adopted)
        jobs_move(daemon, live, STATE_QUEUED, NULL, "the daemon was stopped before the job ran");
    else if (live->record->state == STATE_STARTING)
        jobs_give_up(daemon, live, STATE_FAILED, why);
    else
        jobs_give_up(daemon, live, STATE_LOST, why);
    live->adopted = false;
    jobs_schedule(daemon);
}

static void on_alarm(void *owner)
{
    jobs_flush(owner, false);
    wait_expire(owner);
    limits_expire(owner);
    daemon_set_alarm(owner);
}

/* ── Progress, written now and then ── */

struct save {
    struct store_request base;
    struct job_record *record;
};

static int save_run(struct store_request *base, struct store *store, struct err *err)
{
    return store_update_job(store, ((struct save *)base)->record, err);
}

/* A failure needs no answer: the next report or move writes the same columns again. */
static void save_done(struct store_request *base, const struct err *err)
{
    struct save *save = (struct save *)base;
    (void)err;
    job_record_free(save->record);
    free(save);
}

static void save(struct daemon *daemon, struct live *live)
{
    struct save *save = calloc(1, sizeof *save);
    if (save == NULL || (save->record = job_record_copy(live->record)) == NULL) {
        free(save);
        out_of_memory(daemon);
        return;
    }
    save->base = (struct store_request){.kind = STORE_WRITE, .run = save_run, .done = save_done};
    live->unsaved = false;
    store_thread_submit(daemon->store, &save->base);
}

void jobs_flush(struct daemon *daemon, bool now)
{
    struct jobs *jobs = &daemon->jobs;
    if (jobs->flush_at_ms == 0 ||
        (!now && daemon->runner->clock_ms(daemon->runner) < jobs->flush_at_ms))
        return;
    jobs->flush_at_ms = 0;
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->live[i]->unsaved)
            save(daemon, jobs->live[i]);
}

static void on_probed(void *owner, struct inventory *inventory, const struct err *why)
{
    daemon_probed(owner, inventory, why);
}

const struct runner_events jobs_runner_events = {
    .started = on_started,
    .report = on_report,
    .log_grew = on_log_grew,
    .ended = on_ended,
    .gone = on_gone,
    .probed = on_probed,
    .alarm = on_alarm,
};
