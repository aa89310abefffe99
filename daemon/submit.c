/* submit.c: job.submit. The document is checked without opening any file; what is answered is
 * committed. */
#define _GNU_SOURCE /* asprintf */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/methods.h"
#include "daemon/record.h"
#include "daemon/store_thread.h"
#include "daemon/watch.h"
#include "proto/job.h"
#include "proto/json.h"
#include "proto/methods.h"

enum {
    UNFINISHED_MAX = 20000, /* jobs, of everybody */
    KEY_BYTES = 256,
};

struct submission {
    struct store_request base;
    struct daemon *daemon;
    struct call *call;
    struct job_record *record;
    struct job_transition transition;
    struct after after;
    char *output; /* as in the document; NULL: runs/ID */
    char *document;
    const char *key; /* in the call's parameters, or NULL */
    bool known;      /* the key is of an earlier submission: `record` is that job */
};

static void submission_free(struct submission *submission)
{
    if (submission == NULL)
        return;
    job_record_free(submission->record);
    job_transition_done(&submission->transition);
    after_clear(&submission->after);
    free(submission->output);
    free(submission->document);
    free(submission);
}

/* "CWD/OUTPUT", or OUTPUT if that is absolute. NULL without memory. */
static char *absolute(const char *cwd, const char *output)
{
    char *path;
    if (output[0] == '/')
        return strdup(output);
    return asprintf(&path, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, output) >= 0 ? path : NULL;
}

static int set_output(struct submission *submission, struct err *err)
{
    char by_id[64];
    struct job_record *record = submission->record;
    snprintf(by_id, sizeof by_id, "runs/%lld", (long long)record->id);
    char *path = absolute(record->cwd, submission->output != NULL ? submission->output : by_id);
    if (path == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    free(record->output);
    record->output = path;
    return 0;
}

/* The job of an earlier submission with this key takes the place of the new one. */
static int find_known(struct submission *submission, struct store *store, struct err *err)
{
    int64_t id = 0;
    struct job_record *known;
    if (submission->key == NULL)
        return 0;
    int rc = store_find_key(store, submission->call->peer.uid, submission->key, &id, err);
    if (rc != 0 || id == 0)
        return rc;
    rc = store_get_job(store, id, &known, err);
    if (rc == 0) {
        job_record_free(submission->record);
        submission->record = known;
        submission->known = true;
    }
    return rc;
}

static int submission_run(struct store_request *base, struct store *store, struct err *err)
{
    struct submission *submission = (struct submission *)base;
    struct job_record *record;
    int rc = find_known(submission, store, err);
    if (rc != 0 || submission->known)
        return rc;
    record = submission->record;
    record->id = 0;
    rc = after_read(&submission->after, store, record->after, err);
    if (rc != 0)
        return rc;
    rc = store_insert_job(store, record, submission->key, err);
    if (rc == 0)
        rc = set_output(submission, err);
    if (rc == 0)
        rc = store_update_job(store, record, err);
    if (rc == 0)
        rc = store_insert_document(store, record->id, submission->document,
                                   strlen(submission->document), err);
    submission->transition.id = record->id;
    return rc != 0 ? rc : store_insert_transition(store, &submission->transition, err);
}

static json_t *answer(int64_t id, enum job_state state, const char *reason)
{
    return json_pack("{s:I, s:s, s:o}", "id", (json_int_t)id, "state", state_name(state), "reason",
                     record_text(reason));
}

static void accept_new(struct submission *submission)
{
    struct daemon *daemon = submission->daemon;
    struct err err = ERR_INIT;
    struct live *live;
    char why[64];
    if (jobs_add(daemon, submission->record, &live, &err) != 0) {
        daemon_fail(daemon, &err); /* it is committed: the next daemon runs it */
        return;
    }
    submission->record = NULL;
    live->after = submission->after;
    submission->after = (struct after){0};
    if (live->after.broken == 0)
        jobs_schedule(daemon); /* first: the event tells why it waits */
    watch_moved(daemon, live->record, &submission->transition);
    call_reply(submission->call,
               answer(live->record->id, submission->transition.to,
                      submission->transition.to == STATE_QUEUED ? jobs_why(live, why)
                                                                : live->record->reason));
    submission->call = NULL;
    after_settle(daemon, live);
}

static void submission_done(struct store_request *base, const struct err *err)
{
    struct submission *submission = (struct submission *)base;
    const struct job_record *record = submission->record;
    if (err->code == 0 && !submission->known && !submission->daemon->stopping)
        accept_new(submission);
    if (submission->call != NULL && err->code == 0) {
        char buf[64];
        const char *why = jobs_why(jobs_find(submission->daemon, record->id), buf);
        bool queued = record->state == STATE_QUEUED;
        call_reply(submission->call,
                   answer(record->id, record->state, queued ? why : record->reason));
    } else if (submission->call != NULL) {
        call_fail(submission->call, err);
    }
    submission_free(submission);
}

/* ── Before anything is written ── */

static int check_room(struct daemon *daemon, uid_t uid, struct err *err)
{
    const struct jobs *jobs = &daemon->jobs;
    size_t own = 0;
    for (size_t i = 0; i < jobs->n; i++)
        own += jobs->live[i]->record->uid == uid;
    if (jobs->n >= UNFINISHED_MAX)
        return err_set(err, ERR_BUSY, "%d jobs wait or run already", UNFINISHED_MAX);
    if (own >= (size_t)daemon->config->user_jobs && !daemon->config->user_mode)
        return err_set(err, ERR_BUSY, "%d of your jobs wait or run already",
                       daemon->config->user_jobs);
    return 0;
}

static int check_caller(struct daemon *daemon, const struct call *call, struct err *err)
{
    const struct config *config = daemon->config;
    if (!config->user_mode && call->peer.uid == 0 && !config->allow_root_jobs)
        return err_set(err, ERR_DENIED,
                       "jobs of root are off; submit as another user, or start traind with "
                       "--allow-root-jobs");
    return check_room(daemon, call->peer.uid, err);
}

static int check_texts(const json_t *params, const char *cwd, const char *key, struct err *err)
{
    if (cwd[0] != '/' || strlen(cwd) > LIMIT_PATH_BYTES)
        return method_refuse(err, params, "cwd", "an absolute path of at most %d bytes",
                             LIMIT_PATH_BYTES);
    if (key != NULL && (key[0] == '\0' || strlen(key) > KEY_BYTES))
        return method_refuse(err, params, "key", "1 to %d bytes", KEY_BYTES);
    return 0;
}

/* "all" is as many as the user may have; a count beyond that would never run. */
static int check_limit(const struct daemon *daemon, const struct job_parallel *parallel,
                       struct devlist *want, struct err *err)
{
    size_t most = (size_t)daemon->config->user_devices;
    if (most == 0 || want->n <= most)
        return 0;
    if (parallel->n_devices > 0)
        return err_at(err, ERR_DENIED, "/parallel/devices",
                      "a user may hold %zu device%s at once, found %zu", most, most == 1 ? "" : "s",
                      want->n);
    want->n = most;
    return 0;
}

/* What the document's `queue` asks for. */
static int fill_queue(const struct peer *peer, const struct job_queue *queue,
                      struct submission *submission, struct err *err)
{
    struct job_record *record = submission->record;
    char held[32];
    if (queue->priority > 0 && !peer->admin)
        return err_at(err, ERR_DENIED, "/queue/priority",
                      "a priority above 0 is an administrator's, found %lld",
                      (long long)queue->priority);
    record->priority = queue->priority;
    record->time_limit_s = queue->time_limit_s;
    record->state = submission->transition.to = queue->hold ? STATE_HELD : STATE_QUEUED;
    snprintf(held, sizeof held, "held by uid %u", (unsigned)peer->uid);
    bool ok = !queue->hold || ((record->reason = strdup(held)) != NULL &&
                               (submission->transition.reason = strdup(held)) != NULL);
    if (queue->after.n > 0)
        record->after = json_array();
    for (size_t i = 0; record->after != NULL && i < queue->after.n; i++)
        record->after = json_list_append(record->after, json_integer(queue->after.v[i]));
    ok &= queue->after.n == 0 || record->after != NULL;
    return ok ? 0 : err_set(err, ERR_NOMEM, "out of memory");
}

/* Fills a record from the document; the caller frees it also after an error. */
static int fill(struct daemon *daemon, struct submission *submission, const struct job *job,
                const char *cwd, struct err *err)
{
    struct job_record *record = calloc(1, sizeof *record);
    if (record == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    submission->record = record;
    int rc = devlist_want(&job->parallel, &daemon->devices, &record->want, err);
    if (rc == 0)
        rc = check_limit(daemon, &job->parallel, &record->want, err);
    if (rc == 0)
        rc = job_check_devices(job, record->want.n, err);
    if (rc != 0)
        return rc;
    record->uid = submission->call->peer.uid;
    record->gid = submission->call->peer.gid;
    record->submitted_ns = daemon->runner->now_ns(daemon->runner);
    record->name = strdup(job->name);
    record->cwd = strdup(cwd);
    record->output = strdup("");
    submission->output = job->output != NULL ? strdup(job->output) : NULL;
    submission->transition = (struct job_transition){
        .time_ns = record->submitted_ns,
        .from = STATE_COUNT,
        .by_user = true,
        .uid = record->uid,
    };
    if (record->name == NULL || record->cwd == NULL || record->output == NULL ||
        (job->output != NULL && submission->output == NULL))
        return err_set(err, ERR_NOMEM, "out of memory");
    return fill_queue(&submission->call->peer, &job->queue, submission, err);
}

static int read_document(struct daemon *daemon, struct submission *submission, struct err *err)
{
    const json_t *params = submission->call->request.params;
    const json_t *document = json_object_get(params, "job");
    const char *cwd = json_string_value(json_object_get(params, "cwd"));
    struct job *job;
    submission->key = json_string_value(json_object_get(params, "key"));
    int rc = check_texts(params, cwd, submission->key, err);
    if (rc == 0)
        rc = job_from_json(document, &job, err);
    if (rc != 0)
        return rc;
    rc = fill(daemon, submission, job, cwd, err);
    job_free(job);
    if (rc == 0 && (submission->document = json_line(document)) == NULL)
        rc = err_set(err, ERR_NOMEM, "out of memory");
    if (rc == 0 && strlen(submission->document) > LIMIT_DOCUMENT_BYTES)
        rc = err_set(err, ERR_JOB_INVALID, "the document is longer than %d MiB",
                     LIMIT_DOCUMENT_BYTES >> 20);
    return rc;
}

/* What would keep it waiting if it were submitted now. */
static int forecast(struct submission *submission, struct err *err)
{
    const struct job_record *record = submission->record;
    char buf[64];
    const char *why = record->reason;
    int rc = record->state == STATE_QUEUED
                 ? jobs_forecast(submission->daemon, record, buf, &why, err)
                 : 0;
    if (rc == 0)
        call_reply(submission->call,
                   json_pack("{s:b, s:I, s:o}", "valid", 1, "n_devices", (json_int_t)record->want.n,
                             "reason", record_text(why)));
    return rc;
}

int submit_call(struct daemon *daemon, struct call *call, struct err *err)
{
    int rc = check_caller(daemon, call, err);
    if (rc != 0)
        return rc;
    struct submission *submission = calloc(1, sizeof *submission);
    if (submission == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    submission->base =
        (struct store_request){.kind = STORE_WRITE, .run = submission_run, .done = submission_done};
    submission->daemon = daemon;
    submission->call = call;
    rc = read_document(daemon, submission, err);
    if (rc != 0) {
        submission_free(submission);
    } else if (json_is_true(json_object_get(call->request.params, "dry_run"))) {
        rc = forecast(submission, err);
        submission_free(submission);
    } else {
        store_thread_submit(daemon->store, &submission->base);
    }
    return rc;
}
