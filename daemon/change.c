/* change.c: job.cancel, job.hold, job.release and job.update: all of the jobs or none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/methods.h"
#include "daemon/query.h"
#include "daemon/store_thread.h"
#include "proto/job_queue.h"
#include "proto/json.h"
#include "proto/methods.h"

enum { CHANGE_IDS = 1000, REASON_BYTES = 200 };

struct change;

/* What the methods differ in. */
struct verb {
    const char *done;    /* "cancelled" */
    unsigned states;     /* bits 1 << state: where it can be done */
    const char *allowed; /* those states in words */
    /* Why the caller may not do it to this job, which is his; NULL: he may whatever it is. */
    int (*refuse)(const struct change *change, const struct job_record *record, struct err *err);
    void (*apply)(struct change *change, struct live *live, const char *reason);
    enum job_state to; /* of a job that is not live any more when the answer is due */
};

/* Read what they are ─► decide on all ─► move them ─► answer behind the moves' commit. */
struct change {
    struct store_request base;
    struct daemon *daemon;
    struct call *call;
    const struct verb *verb;
    struct jobs_patch patch; /* of an update */
    struct query_briefs jobs;
};

static void change_free(struct change *change)
{
    query_briefs_clear(&change->jobs);
    free(change);
}

static int read_run(struct store_request *base, struct store *store, struct err *err)
{
    struct change *change = (struct change *)base;
    return query_briefs_read(&change->jobs, store, change->call, err);
}

/* Why this one cannot be changed, as it is decided now (its commit may be under way). */
static int refuse(struct change *change, const struct job_brief *job, struct err *err)
{
    const struct live *live = jobs_find(change->daemon, job->id);
    enum job_state state = live != NULL ? live->record->state : job->state;
    if (job->state == STATE_COUNT)
        return err_set(err, ERR_NOT_FOUND, "there is no job %lld", (long long)job->id);
    if (!peer_owns(&change->call->peer, job->uid))
        return err_set(err, ERR_DENIED, "job %lld is of uid %u", (long long)job->id,
                       (unsigned)job->uid);
    if (live == NULL || state_ended(state))
        return err_set(err, ERR_JOB_STATE, "job %lld has ended (%s)", (long long)job->id,
                       state_name(state));
    if ((change->verb->states >> state & 1) == 0)
        return err_set(err, ERR_JOB_STATE, "job %lld is %s, and only a job that %s can be %s",
                       (long long)job->id, state_name(state), change->verb->allowed,
                       change->verb->done);
    return change->verb->refuse != NULL ? change->verb->refuse(change, live->record, err) : 0;
}

/* Every fault in one sentence; the first gives the code. */
static int refuse_any(struct change *change, struct err *ret_err)
{
    char *message = ret_err->message;
    size_t size = sizeof ret_err->message, used = 0;
    for (size_t i = 0; i < change->jobs.n; i++) {
        struct err err = ERR_INIT;
        int n;
        if (refuse(change, &change->jobs.brief[i], &err) == 0)
            continue;
        if (ret_err->code == 0)
            n = snprintf(message, size, "nothing is %s: %s", change->verb->done, err.message);
        else
            n = snprintf(message + used, size - used, "; %s", err.message);
        ret_err->code = ret_err->code != 0 ? ret_err->code : err.code;
        used = used + (size_t)n < size ? used + (size_t)n : size - 1;
    }
    return ret_err->code;
}

static int nothing_run(struct store_request *base, struct store *store, struct err *err)
{
    (void)base;
    (void)store;
    (void)err;
    return 0;
}

static void fail_unwritten(struct change *change, const struct err *err)
{
    struct err told = *err;
    err_context(&told, "the jobs will be %s as soon as that can be written", change->verb->done);
    call_fail(change->call, &told);
    change_free(change);
}

/* Requests are done in order, so the moves are committed when this one's turn comes; on a full disk
 * they wait, but the caller does not. */
static void moved_done(struct store_request *base, const struct err *err)
{
    struct change *change = (struct change *)base;
    if (err->code != 0) {
        fail_unwritten(change, err);
        return;
    }
    json_t *jobs = json_array();
    for (size_t i = 0; jobs != NULL && i < change->jobs.n; i++) {
        int64_t id = change->jobs.brief[i].id;
        const struct live *live = jobs_find(change->daemon, id);
        enum job_state state = live != NULL ? live->record->state : change->verb->to;
        jobs = json_list_append(
            jobs, json_pack("{s:I, s:s}", "id", (json_int_t)id, "state", state_name(state)));
    }
    call_reply(change->call, json_pack("{s:o}", "jobs", jobs));
    change_free(change);
}

static void change_all(struct change *change)
{
    char reason[REASON_BYTES + 64];
    uid_t by = change->call->peer.uid;
    const char *said = json_string_value(json_object_get(change->call->request.params, "reason"));
    snprintf(reason, sizeof reason, "%s by uid %u%s%s", change->verb->done, (unsigned)by,
             said != NULL ? ": " : "", said != NULL ? said : "");
    for (size_t i = 0; i < change->jobs.n; i++) {
        struct live *live = jobs_find(change->daemon, change->jobs.brief[i].id);
        change->verb->apply(change, live, reason);
    }
}

static void read_done(struct store_request *base, const struct err *err)
{
    struct change *change = (struct change *)base;
    struct err refused = *err;
    if (change->daemon->stopping && refused.code == 0)
        err_set(&refused, ERR_BUSY, "the daemon is stopping");
    if (refused.code != 0 || refuse_any(change, &refused) != 0) {
        call_fail(change->call, &refused);
        change_free(change);
        return;
    }
    change_all(change);
    change->base =
        (struct store_request){.kind = STORE_WRITE, .run = nothing_run, .done = moved_done};
    store_thread_submit(change->daemon->store, &change->base);
}

static int change_call(struct daemon *daemon, struct call *call, const struct verb *verb,
                       const struct jobs_patch *patch, struct err *err)
{
    const json_t *params = call->request.params;
    size_t n = json_array_size(json_object_get(params, "ids"));
    const char *reason = json_string_value(json_object_get(params, "reason"));
    if (n == 0 || n > CHANGE_IDS)
        return method_refuse(err, params, "ids", "1 to %d jobs", CHANGE_IDS);
    if (reason != NULL && strlen(reason) > REASON_BYTES)
        return method_refuse(err, params, "reason", "at most %d bytes", REASON_BYTES);
    struct change *change = calloc(1, sizeof *change);
    if (change == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    change->base = (struct store_request){.kind = STORE_READ, .run = read_run, .done = read_done};
    change->daemon = daemon;
    change->call = call;
    change->verb = verb;
    change->patch = *patch;
    store_thread_submit(daemon->store, &change->base);
    return 0;
}

enum {
    WAITING = 1u << STATE_HELD | 1u << STATE_QUEUED,
    UPDATABLE = WAITING | 1u << STATE_RUNNING,
};

static const struct jobs_patch nothing = {false, 0, false, 0};

static void cancel(struct change *change, struct live *live, const char *reason)
{
    jobs_cancel(change->daemon, live, change->call->peer.uid, reason);
}

static void hold(struct change *change, struct live *live, const char *reason)
{
    jobs_hold(change->daemon, live, change->call->peer.uid, reason);
}

static void release(struct change *change, struct live *live, const char *reason)
{
    jobs_release(change->daemon, live, change->call->peer.uid, reason);
}

static void update(struct change *change, struct live *live, const char *reason)
{
    jobs_update(change->daemon, live, &change->patch, change->call->peer.uid, reason);
}

/* Others were told when devices are free again by the limit of what runs. */
static int refuse_update(const struct change *change, const struct job_record *record,
                         struct err *err)
{
    const struct jobs_patch *patch = &change->patch;
    bool longer = patch->limits && record->time_limit_s > 0 &&
                  (patch->time_limit_s == 0 || patch->time_limit_s > record->time_limit_s);
    if (change->call->peer.admin)
        return 0;
    if (patch->prefers && patch->priority > record->priority)
        return err_set(err, ERR_DENIED, "job %lld has priority %lld: only administrators raise it",
                       (long long)record->id, (long long)record->priority);
    if (longer && record->state == STATE_RUNNING)
        return err_set(err, ERR_DENIED,
                       "job %lld runs: only administrators make its time limit longer",
                       (long long)record->id);
    return 0;
}

int cancel_call(struct daemon *daemon, struct call *call, struct err *err)
{
    static const struct verb verb = {"cancelled", ~0u,    "has not ended",
                                     NULL,        cancel, STATE_CANCELLED};
    return change_call(daemon, call, &verb, &nothing, err);
}

int hold_call(struct daemon *daemon, struct call *call, struct err *err)
{
    static const struct verb verb = {"held", WAITING, "waits", NULL, hold, STATE_CANCELLED};
    return change_call(daemon, call, &verb, &nothing, err);
}

int release_call(struct daemon *daemon, struct call *call, struct err *err)
{
    static const struct verb verb = {"released", WAITING, "waits", NULL, release, STATE_CANCELLED};
    return change_call(daemon, call, &verb, &nothing, err);
}

int update_call(struct daemon *daemon, struct call *call, struct err *err)
{
    static const struct verb verb = {"updated",     UPDATABLE, "waits or runs",
                                     refuse_update, update,    STATE_CANCELLED};
    const json_t *params = call->request.params;
    const json_t *priority = json_object_get(params, "priority");
    const char *limit = json_string_value(json_object_get(params, "time_limit"));
    bool unlimited = limit != NULL && strcmp(limit, "none") == 0;
    const struct jobs_patch patch = {priority != NULL, json_integer_value(priority), limit != NULL,
                                     limit == NULL || unlimited ? 0 : job_duration_read(limit)};
    if (!patch.prefers && !patch.limits)
        return err_set(err, ERR_PARAMS, "priority or time_limit must be given");
    if (patch.priority < -JOB_PRIORITY_MOST || patch.priority > JOB_PRIORITY_MOST)
        return method_refuse(err, params, "priority", "from %d to %d", -JOB_PRIORITY_MOST,
                             JOB_PRIORITY_MOST);
    if (patch.time_limit_s < 0)
        return method_refuse(err, params, "time_limit",
                             "\"none\" or a length of time such as \"2h\" or \"30m\"");
    return change_call(daemon, call, &verb, &patch, err);
}
