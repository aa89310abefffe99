/* wait.c: see wait.h. */
#include "daemon/wait.h"

#include <math.h>
#include <stdlib.h>

#include "daemon/daemon.h"
#include "daemon/query.h"
#include "daemon/store_thread.h"
#include "proto/json.h"
#include "proto/methods.h"

enum { WAIT_IDS = 1000 };

struct wait {
    struct store_request base; /* the first look */
    struct daemon *daemon;
    struct call *call;
    struct query_briefs jobs; /* as last seen, in the order of `ids` */
    size_t n_ended;
    bool any, listed;
    double timeout_s; /* negative: none */
    int64_t deadline_ms;
    LIST_ENTRY(wait) link;
};

static void wait_free(struct wait *wait)
{
    if (wait->listed)
        LIST_REMOVE(wait, link);
    query_briefs_clear(&wait->jobs);
    free(wait);
}

static bool is_over(const struct wait *wait)
{
    return wait->any ? wait->n_ended > 0 : wait->n_ended == wait->jobs.n;
}

static json_t *job_json(const struct wait *wait, const struct job_brief *job)
{
    bool shown =
        state_ended(job->state) && job->exit != NULL && peer_owns(&wait->call->peer, job->uid);
    return json_pack("{s:I, s:s, s:o}", "id", (json_int_t)job->id, "state", state_name(job->state),
                     "exit", shown ? json_incref(job->exit) : json_null());
}

/* Answering can close the session, which looks through the list: this one is off it first. */
static void answer(struct wait *wait, bool timed_out)
{
    json_t *jobs = json_array();
    if (wait->listed)
        LIST_REMOVE(wait, link);
    wait->listed = false;
    for (size_t i = 0; jobs != NULL && i < wait->jobs.n; i++)
        jobs = json_list_append(jobs, job_json(wait, &wait->jobs.brief[i]));
    call_reply(wait->call, json_pack("{s:o, s:b}", "jobs", jobs, "timed_out", timed_out));
    wait_free(wait);
}

static int look_run(struct store_request *base, struct store *store, struct err *err)
{
    struct wait *wait = (struct wait *)base;
    int rc = query_briefs_read(&wait->jobs, store, wait->call, err);
    wait->n_ended = 0;
    for (size_t i = 0; rc == 0 && i < wait->jobs.n; i++) {
        const struct job_brief *job = &wait->jobs.brief[i];
        if (job->state == STATE_COUNT)
            rc = err_set(err, ERR_NOT_FOUND, "there is no job %lld", (long long)job->id);
        else
            wait->n_ended += state_ended(job->state);
    }
    return rc;
}

static void look_done(struct store_request *base, const struct err *err)
{
    struct wait *wait = (struct wait *)base;
    struct daemon *daemon = wait->daemon;
    if (err->code != 0) {
        call_fail(wait->call, err);
        wait_free(wait);
    } else if (is_over(wait) || wait->timeout_s == 0 || wait->call->session == NULL) {
        answer(wait, !is_over(wait));
    } else {
        wait->deadline_ms = INT64_MAX;
        if (wait->timeout_s > 0)
            wait->deadline_ms =
                daemon->runner->clock_ms(daemon->runner) + (int64_t)ceil(wait->timeout_s * 1000);
        LIST_INSERT_HEAD(&daemon->waits, wait, link);
        wait->listed = true;
        daemon_set_alarm(daemon);
    }
}

int wait_call(struct daemon *daemon, struct call *call, struct err *err)
{
    const json_t *params = call->request.params;
    const json_t *timeout = json_object_get(params, "timeout");
    size_t n = json_array_size(json_object_get(params, "ids"));
    double timeout_s = timeout != NULL ? json_number_value(timeout) : -1;
    if (n == 0 || n > WAIT_IDS)
        return method_refuse(err, params, "ids", "1 to %d jobs", WAIT_IDS);
    if (timeout != NULL && !(timeout_s >= 0 && timeout_s <= 1e9))
        return method_refuse(err, params, "timeout", "seconds from 0 to 1e9");
    struct wait *wait = calloc(1, sizeof *wait);
    if (wait == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    wait->base = (struct store_request){.kind = STORE_READ, .run = look_run, .done = look_done};
    wait->daemon = daemon;
    wait->call = call;
    wait->any = json_is_true(json_object_get(params, "any"));
    wait->timeout_s = timeout_s;
    store_thread_submit(daemon->store, &wait->base);
    return 0;
}

/* Enters the move where the job is waited for. True if it was. */
static bool update(struct wait *wait, const struct job_record *record)
{
    bool found = false;
    for (size_t i = 0; i < wait->jobs.n; i++) {
        struct job_brief *seen = &wait->jobs.brief[i];
        if (seen->id != record->id)
            continue;
        wait->n_ended += state_ended(record->state) && !state_ended(seen->state);
        seen->state = record->state;
        json_decref(seen->exit);
        seen->exit = json_incref(record->exit);
        found = true;
    }
    return found;
}

/* The first that is over; an answer can change the list, so each search starts anew. */
static struct wait *find_over(struct daemon *daemon, int64_t now_ms)
{
    struct wait *wait;
    LIST_FOREACH(wait, &daemon->waits, link)
    if (is_over(wait) || wait->deadline_ms <= now_ms)
        return wait;
    return NULL;
}

void wait_moved(struct daemon *daemon, const struct job_record *record)
{
    struct wait *wait;
    bool found = false;
    LIST_FOREACH(wait, &daemon->waits, link)
    found |= update(wait, record);
    while (found && (wait = find_over(daemon, INT64_MIN)) != NULL)
        answer(wait, false);
}

void wait_expire(struct daemon *daemon)
{
    struct wait *wait;
    int64_t now_ms = daemon->runner->clock_ms(daemon->runner);
    while ((wait = find_over(daemon, now_ms)) != NULL)
        answer(wait, !is_over(wait));
}

int64_t wait_next_ms(const struct daemon *daemon)
{
    int64_t next = INT64_MAX;
    const struct wait *wait;
    LIST_FOREACH(wait, &daemon->waits, link)
    if (wait->deadline_ms < next)
        next = wait->deadline_ms;
    return next;
}

static void free_some(struct daemon *daemon, bool all)
{
    struct err err = ERR_INIT;
    struct wait *wait, *next;
    err_set(&err, ERR_BUSY, "the daemon is stopping");
    for (wait = LIST_FIRST(&daemon->waits); wait != NULL; wait = next) {
        next = LIST_NEXT(wait, link);
        if (all || wait->call->session == NULL) {
            call_fail(wait->call, &err);
            wait_free(wait);
        }
    }
}

void wait_forget(struct daemon *daemon)
{
    free_some(daemon, false);
}

void wait_free_all(struct daemon *daemon)
{
    free_some(daemon, true);
}
