/* cancel.c: job.cancel: all of the jobs or none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/methods.h"
#include "daemon/query.h"
#include "daemon/store_thread.h"
#include "proto/json.h"
#include "proto/methods.h"

enum { CANCEL_IDS = 1000, REASON_BYTES = 200 };

/* Read what they are ─► decide on all ─► move them ─► answer behind the moves' commit. */
struct cancel {
    struct store_request base;
    struct daemon *daemon;
    struct call *call;
    struct query_briefs jobs;
};

static void cancel_free(struct cancel *cancel)
{
    query_briefs_clear(&cancel->jobs);
    free(cancel);
}

static int read_run(struct store_request *base, struct store *store, struct err *err)
{
    struct cancel *cancel = (struct cancel *)base;
    return query_briefs_read(&cancel->jobs, store, cancel->call, err);
}

/* Why this one cannot be cancelled, as it is decided now (its commit may be under way). */
static int refuse(struct cancel *cancel, const struct job_brief *job, struct err *err)
{
    const struct live *live = jobs_find(cancel->daemon, job->id);
    enum job_state state = live != NULL ? live->record->state : job->state;
    if (job->state == STATE_COUNT)
        return err_set(err, ERR_NOT_FOUND, "there is no job %lld", (long long)job->id);
    if (!peer_owns(&cancel->call->peer, job->uid))
        return err_set(err, ERR_DENIED, "job %lld is of uid %u", (long long)job->id,
                       (unsigned)job->uid);
    if (live == NULL || state_ended(state))
        return err_set(err, ERR_JOB_STATE, "job %lld has ended (%s)", (long long)job->id,
                       state_name(state));
    return 0;
}

/* Every fault in one sentence; the first gives the code. */
static int refuse_any(struct cancel *cancel, struct err *ret_err)
{
    size_t used = 0;
    for (size_t i = 0; i < cancel->jobs.n; i++) {
        struct err err = ERR_INIT;
        if (refuse(cancel, &cancel->jobs.brief[i], &err) == 0)
            continue;
        if (ret_err->code == 0)
            used = strlen(strcpy(ret_err->message, "nothing is cancelled"));
        ret_err->code = ret_err->code != 0 ? ret_err->code : err.code;
        int n = snprintf(ret_err->message + used, sizeof ret_err->message - used, "%s%s",
                         used == strlen("nothing is cancelled") ? ": " : "; ", err.message);
        used = used + (size_t)n < sizeof ret_err->message ? used + (size_t)n
                                                          : sizeof ret_err->message - 1;
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

static void fail_unwritten(struct cancel *cancel, const struct err *err)
{
    struct err told = *err;
    err_context(&told, "the jobs will be cancelled as soon as that can be written");
    call_fail(cancel->call, &told);
    cancel_free(cancel);
}

/* Requests are done in order, so the moves are committed when this one's turn comes; on a full disk
 * they wait, but the caller does not. */
static void moved_done(struct store_request *base, const struct err *err)
{
    struct cancel *cancel = (struct cancel *)base;
    if (err->code != 0) {
        fail_unwritten(cancel, err);
        return;
    }
    json_t *jobs = json_array();
    for (size_t i = 0; jobs != NULL && i < cancel->jobs.n; i++) {
        int64_t id = cancel->jobs.brief[i].id;
        const struct live *live = jobs_find(cancel->daemon, id);
        enum job_state state = live != NULL ? live->record->state : STATE_CANCELLED;
        jobs = json_list_append(
            jobs, json_pack("{s:I, s:s}", "id", (json_int_t)id, "state", state_name(state)));
    }
    call_reply(cancel->call, json_pack("{s:o}", "jobs", jobs));
    cancel_free(cancel);
}

static void move_all(struct cancel *cancel)
{
    char reason[REASON_BYTES + 64];
    uid_t by = cancel->call->peer.uid;
    const char *said = json_string_value(json_object_get(cancel->call->request.params, "reason"));
    snprintf(reason, sizeof reason, "cancelled by uid %u%s%s", (unsigned)by,
             said != NULL ? ": " : "", said != NULL ? said : "");
    for (size_t i = 0; i < cancel->jobs.n; i++) {
        struct live *live = jobs_find(cancel->daemon, cancel->jobs.brief[i].id);
        if (live->record->state != STATE_STOPPING && !state_ended(live->record->state))
            jobs_cancel(cancel->daemon, live, by, reason);
    }
}

static void read_done(struct store_request *base, const struct err *err)
{
    struct cancel *cancel = (struct cancel *)base;
    struct err refused = *err;
    if (cancel->daemon->stopping && refused.code == 0)
        err_set(&refused, ERR_BUSY, "the daemon is stopping");
    if (refused.code != 0 || refuse_any(cancel, &refused) != 0) {
        call_fail(cancel->call, &refused);
        cancel_free(cancel);
        return;
    }
    move_all(cancel);
    cancel->base =
        (struct store_request){.kind = STORE_WRITE, .run = nothing_run, .done = moved_done};
    store_thread_submit(cancel->daemon->store, &cancel->base);
}

int cancel_call(struct daemon *daemon, struct call *call, struct err *err)
{
    const json_t *params = call->request.params;
    size_t n = json_array_size(json_object_get(params, "ids"));
    const char *reason = json_string_value(json_object_get(params, "reason"));
    if (n == 0 || n > CANCEL_IDS)
        return method_refuse(err, params, "ids", "1 to %d jobs", CANCEL_IDS);
    if (reason != NULL && strlen(reason) > REASON_BYTES)
        return method_refuse(err, params, "reason", "at most %d bytes", REASON_BYTES);
    struct cancel *cancel = calloc(1, sizeof *cancel);
    if (cancel == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    cancel->base = (struct store_request){.kind = STORE_READ, .run = read_run, .done = read_done};
    cancel->daemon = daemon;
    cancel->call = call;
    store_thread_submit(daemon->store, &cancel->base);
    return 0;
}
