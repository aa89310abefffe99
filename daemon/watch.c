/* watch.c: see watch.h. */
#include "daemon/watch.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/query.h"
#include "daemon/record.h"
#include "daemon/store_thread.h"
#include "proto/methods.h"

struct watch {
    int64_t *ids; /* n_ids > 0: only these */
    size_t n_ids;
    int64_t uid;                  /* only this user's; negative: everybody's */
    int64_t seq;                  /* of the newest state event sent */
    int64_t behind[WATCH_BEHIND]; /* jobs whose news wait for the client */
    size_t n_behind;
    bool lagged; /* and news of further jobs were dropped */
};

/* One row of what `since` has missed. */
struct replayed {
    struct job_transition transition;
    struct job_record *record;
};

struct watch_request {
    struct store_request base;
    struct daemon *daemon;
    struct call *call;
    struct watch *watch;
    bool has_since;
    int64_t since, seq;
    struct query_records snapshot;
    struct replayed *replay;
    size_t n_replay;
};

static void watch_free(struct watch *watch)
{
    if (watch != NULL)
        free(watch->ids);
    free(watch);
}

static void clear_rows(struct watch_request *request)
{
    query_records_clear(&request->snapshot);
    for (size_t i = 0; i < request->n_replay; i++) {
        job_transition_done(&request->replay[i].transition);
        job_record_free(request->replay[i].record);
    }
    free(request->replay);
    request->replay = NULL;
    request->n_replay = 0;
}

static void request_free(struct watch_request *request)
{
    clear_rows(request);
    watch_free(request->watch);
    free(request);
}

static bool matches(const struct watch *watch, int64_t id, uid_t uid)
{
    if (watch->uid >= 0 && watch->uid != (int64_t)uid)
        return false;
    for (size_t i = 0; i < watch->n_ids; i++)
        if (watch->ids[i] == id)
            return true;
    return watch->n_ids == 0;
}

/* ── Events ── */

static void send_event(struct session *session, int64_t seq, int64_t id, const char *type,
                       int64_t time_ns, json_t *record)
{
    session_notify(session, "job.event",
                   json_pack("{s:I, s:I, s:s, s:o, s:o}", "seq", (json_int_t)seq, "id",
                             (json_int_t)id, "type", type, "time", record_time(time_ns), "record",
                             record));
}

static void send_state(struct session *session, const struct job_record *record, const char *why,
                       const struct job_transition *transition)
{
    struct watch *watch = *session_watch(session);
    bool full = peer_owns(session_peer(session), record->uid);
    json_t *changed;
    if (record->state == transition->to)
        changed = record_changed(record, why, full);
    else /* it has moved on since: what this row says is all there is */
        changed = json_pack("{s:s, s:o}", "state", state_name(transition->to), "reason",
                            record_text(full ? transition->reason : NULL));
    watch->seq = transition->seq;
    send_event(session, transition->seq, record->id, "state", transition->time_ns, changed);
}

void watch_moved(struct daemon *daemon, const struct job_record *record,
                 const struct job_transition *transition)
{
    struct session *session, *next;
    char buf[64];
    const char *why = jobs_why(jobs_find(daemon, record->id), buf);
    for (session = session_first(daemon); session != NULL; session = next) {
        struct watch *watch = *session_watch(session);
        next = session_next(session); /* sending can close this one, no other */
        if (watch != NULL && matches(watch, record->id, record->uid))
            send_state(session, record, why, transition);
    }
}

static void send_news(struct session *session, const struct job_record *record,
                      enum journal_news news)
{
    struct daemon *daemon = session_daemon(session);
    struct watch *watch = *session_watch(session);
    send_event(session, watch->seq, record->id, journal_news_name(news),
               daemon->runner->now_ns(daemon->runner),
               json_pack("{s:O}", "progress", record->progress));
}

/* A client that is behind hears of this job when it has caught up. */
static void remember(struct watch *watch, int64_t id)
{
    for (size_t i = 0; i < watch->n_behind; i++)
        if (watch->behind[i] == id)
            return;
    if (watch->n_behind < WATCH_BEHIND)
        watch->behind[watch->n_behind++] = id;
    else
        watch->lagged = true;
}

void watch_news(struct daemon *daemon, const struct job_record *record, enum journal_news news)
{
    struct session *session, *next;
    for (session = session_first(daemon); session != NULL; session = next) {
        struct watch *watch = *session_watch(session);
        next = session_next(session);
        if (watch == NULL || !matches(watch, record->id, record->uid) ||
            !peer_owns(session_peer(session), record->uid))
            continue;
        if (session_unread(session) > SESSION_SOFT_BYTES)
            remember(watch, record->id);
        else
            send_news(session, record, news);
    }
}

void watch_drained(struct session *session)
{
    struct watch *watch;
    while ((watch = *session_watch(session)) != NULL && watch->n_behind > 0 &&
           session_unread(session) <= SESSION_SOFT_BYTES) {
        int64_t id = watch->behind[--watch->n_behind];
        const struct live *live = jobs_find(session_daemon(session), id);
        if (live != NULL && live->record->progress != NULL)
            send_news(session, live->record, JOURNAL_PROGRESS);
    }
    if (watch != NULL && watch->n_behind == 0 && watch->lagged) {
        struct daemon *daemon = session_daemon(session);
        watch->lagged = false;
        session_notify(session, "job.event",
                       json_pack("{s:I, s:s, s:o}", "seq", (json_int_t)watch->seq, "type", "lagged",
                                 "time", record_time(daemon->runner->now_ns(daemon->runner))));
    }
}

void watch_forget(struct session *session)
{
    watch_free(*session_watch(session));
    *session_watch(session) = NULL;
}

/* ── The call ── */

static int replay_add(void *arg, struct job_transition *transition, struct err *err)
{
    struct watch_request *request = arg;
    (void)err;
    request->replay[request->n_replay++] = (struct replayed){.transition = *transition};
    return 0;
}

/* An event says nothing of the loss curve, which is most of a record. */
static int read_replayed(struct replayed *row, struct store *store, struct err *err)
{
    int rc = store_get_job(store, row->transition.id, &row->record, err);
    if (rc == 0) {
        json_decref(row->record->losses);
        row->record->losses = NULL;
    }
    return rc;
}

/* The rows first, then their jobs: a statement is not used again while it is walked. */
static int read_replay(struct watch_request *request, struct store *store, struct err *err)
{
    if (request->since > request->seq)
        return err_set(err, ERR_WATCH_GONE, "since: %lld has not happened yet (the newest is %lld)",
                       (long long)request->since, (long long)request->seq);
    if (request->seq - request->since > WATCH_REPLAY)
        return err_set(err, ERR_WATCH_GONE, "since: more than %d events ago; watch anew",
                       WATCH_REPLAY);
    request->replay = calloc(WATCH_REPLAY, sizeof *request->replay);
    if (request->replay == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    int rc =
        store_each_transition_since(store, request->since, WATCH_REPLAY, replay_add, request, err);
    for (size_t i = 0; rc == 0 && i < request->n_replay; i++)
        rc = read_replayed(&request->replay[i], store, err);
    return rc;
}

static int snapshot_add(void *arg, struct job_record *record, struct err *err)
{
    struct watch_request *request = arg;
    if (matches(request->watch, record->id, record->uid))
        return query_records_add(&request->snapshot, record, err);
    job_record_free(record);
    return 0;
}

/* The named jobs, or all that have not ended. */
static int read_snapshot(struct watch_request *request, struct store *store, struct err *err)
{
    const struct watch *watch = request->watch;
    int rc = 0;
    if (watch->n_ids == 0)
        return store_each_unfinished(store, snapshot_add, request, err);
    for (size_t i = 0; rc == 0 && i < watch->n_ids; i++) {
        struct job_record *record;
        rc = store_get_job(store, watch->ids[i], &record, err);
        if (rc == 0)
            rc = snapshot_add(request, record, err);
    }
    return rc;
}

static int watch_run(struct store_request *base, struct store *store, struct err *err)
{
    struct watch_request *request = (struct watch_request *)base;
    clear_rows(request);
    int rc = store_last_seq(store, &request->seq, err);
    if (rc != 0)
        return rc;
    return request->has_since ? read_replay(request, store, err)
                              : read_snapshot(request, store, err);
}

static void replay(struct watch_request *request, struct session *session)
{
    for (size_t i = 0; i < request->n_replay && *session_watch(session) != NULL; i++) {
        const struct replayed *row = &request->replay[i];
        char why[64];
        if (matches(*session_watch(session), row->record->id, row->record->uid))
            send_state(session, row->record,
                       jobs_why(jobs_find(request->daemon, row->record->id), why),
                       &row->transition);
    }
}

/* All earlier commits have been told, no later one has: from here on the watch misses nothing. */
static void watch_done(struct store_request *base, const struct err *err)
{
    struct watch_request *request = (struct watch_request *)base;
    struct session *session = request->call->session;
    if (err->code != 0 || session == NULL) {
        call_fail(request->call, err);
        request_free(request);
        return;
    }
    json_t *jobs = query_records_json(request->daemon, &request->snapshot, &request->call->peer);
    json_t *result =
        json_pack("{s:I, s:o}", "seq",
                  (json_int_t)(request->has_since ? request->since : request->seq), "jobs", jobs);
    if (*session_watch(session) == NULL)
        session_hold(session);
    watch_free(*session_watch(session));
    request->watch->seq = request->has_since ? request->since : request->seq;
    *session_watch(session) = request->watch;
    request->watch = NULL;
    call_reply(request->call, result);
    replay(request, session);
    request_free(request);
}

static int read_watch(const json_t *params, struct watch **ret_watch, struct err *err)
{
    const json_t *ids = json_object_get(params, "ids");
    const json_t *user = json_object_get(params, "user");
    size_t n = json_array_size(ids);
    if (n > WATCH_IDS || (ids != NULL && n == 0))
        return method_refuse(err, params, "ids", "1 to %d jobs", WATCH_IDS);
    if (user != NULL && json_integer_value(user) < 0)
        return method_refuse(err, params, "user", "a uid, at least 0");
    struct watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL || (n > 0 && (watch->ids = calloc(n, sizeof *watch->ids)) == NULL)) {
        watch_free(watch);
        return err_set(err, ERR_NOMEM, "out of memory");
    }
    watch->n_ids = n;
    for (size_t i = 0; i < n; i++)
        watch->ids[i] = json_integer_value(json_array_get(ids, i));
    watch->uid = user != NULL ? json_integer_value(user) : -1;
    *ret_watch = watch;
    return 0;
}

int watch_call(struct daemon *daemon, struct call *call, struct err *err)
{
    const json_t *since = json_object_get(call->request.params, "since");
    struct watch *watch = NULL;
    if (since != NULL && json_integer_value(since) < 0)
        return method_refuse(err, call->request.params, "since", "a seq, at least 0");
    int rc = read_watch(call->request.params, &watch, err);
    if (rc != 0)
        return rc;
    struct watch_request *request = calloc(1, sizeof *request);
    if (request == NULL) {
        watch_free(watch);
        return err_set(err, ERR_NOMEM, "out of memory");
    }
    request->base =
        (struct store_request){.kind = STORE_READ, .run = watch_run, .done = watch_done};
    request->daemon = daemon;
    request->call = call;
    request->watch = watch;
    request->has_since = since != NULL;
    request->since = json_integer_value(since);
    store_thread_submit(daemon->store, &request->base);
    return 0;
}
