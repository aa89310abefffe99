/* query.c: job.list and job.show: rows of the database, with what is newer in memory. */
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/methods.h"
#include "daemon/query.h"
#include "daemon/record.h"
#include "daemon/store_thread.h"
#include "proto/json.h"
#include "proto/methods.h"

enum { LIST_DEFAULT = 100, LIST_MAX = 1000 };

/* The row is what is committed; progress since then, and why it waits, is in memory. */
json_t *query_record(struct daemon *daemon, struct job_record *record, const struct peer *peer)
{
    char why[64];
    const struct live *live = jobs_find(daemon, record->id);
    if (live != NULL && live->unsaved) {
        json_decref(record->progress);
        json_decref(record->losses);
        record->progress = json_incref(live->record->progress);
        record->losses = json_incref(live->record->losses);
    }
    return record_json(record, jobs_why(live, why), peer_owns(peer, record->uid));
}

int query_records_add(void *arg, struct job_record *record, struct err *err)
{
    struct query_records *records = arg;
    if (records->n == records->room) {
        size_t room = records->room > 0 ? 2 * records->room : 32;
        struct job_record **more = realloc(records->record, room * sizeof(struct job_record *));
        if (more == NULL) {
            job_record_free(record);
            return err_set(err, ERR_NOMEM, "out of memory");
        }
        records->record = more;
        records->room = room;
    }
    records->record[records->n++] = record;
    return 0;
}

void query_records_clear(struct query_records *records)
{
    for (size_t i = 0; i < records->n; i++)
        job_record_free(records->record[i]);
    free(records->record);
    *records = (struct query_records){0};
}

int query_briefs_read(struct query_briefs *briefs, struct store *store, const struct call *call,
                      struct err *err)
{
    const json_t *ids = json_object_get(call->request.params, "ids");
    size_t n = json_array_size(ids);
    int rc = 0;
    query_briefs_clear(briefs);
    if ((briefs->brief = calloc(n, sizeof *briefs->brief)) == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (; rc == 0 && briefs->n < n; briefs->n++) {
        struct job_brief *brief = &briefs->brief[briefs->n];
        struct err missing;
        *brief = (struct job_brief){.id = json_integer_value(json_array_get(ids, briefs->n)),
                                    .state = STATE_COUNT};
        if (store_get_brief(store, brief->id, brief, &missing) != 0 &&
            missing.code != ERR_NOT_FOUND) {
            *err = missing;
            rc = missing.code;
        }
    }
    return rc;
}

void query_briefs_clear(struct query_briefs *briefs)
{
    for (size_t i = 0; i < briefs->n; i++)
        json_decref(briefs->brief[i].exit);
    free(briefs->brief);
    *briefs = (struct query_briefs){0};
}

json_t *query_records_json(struct daemon *daemon, const struct query_records *records,
                           const struct peer *peer)
{
    json_t *array = json_array();
    for (size_t i = 0; array != NULL && i < records->n; i++)
        array = json_list_append(array, query_record(daemon, records->record[i], peer));
    return array;
}

/* ── job.list ── */

struct list_request {
    struct store_request base;
    struct daemon *daemon;
    struct call *call;
    struct store_filter filter;
    struct query_records records;
};

static int list_run(struct store_request *base, struct store *store, struct err *err)
{
    struct list_request *request = (struct list_request *)base;
    query_records_clear(&request->records);
    return store_each_job(store, &request->filter, query_records_add, &request->records, err);
}

static json_t *list_json(struct list_request *request)
{
    const struct query_records *records = &request->records;
    bool more = records->n > 0 && (int64_t)records->n == request->filter.limit;
    json_t *jobs = query_records_json(request->daemon, records, &request->call->peer);
    return json_pack("{s:o, s:o}", "jobs", jobs, "next",
                     more ? json_integer(records->record[records->n - 1]->id) : json_null());
}

static void list_done(struct store_request *base, const struct err *err)
{
    struct list_request *request = (struct list_request *)base;
    if (err->code != 0)
        call_fail(request->call, err);
    else
        call_reply(request->call, list_json(request));
    query_records_clear(&request->records);
    free(request);
}

static int read_states(const json_t *names, unsigned *ret_states, struct err *err)
{
    size_t i;
    json_t *name;
    char list[STATE_LIST_SIZE];
    unsigned states = 0;
    json_array_foreach(names, i, name)
    {
        enum job_state state = state_from_name(json_string_value(name));
        if (state == STATE_COUNT)
            return err_set(err, ERR_PARAMS, "states: there is no state \"%.32s\"; allowed are %s",
                           json_string_value(name), state_list(list));
        states |= 1u << state;
    }
    *ret_states = states;
    return 0;
}

static int read_filter(const json_t *params, struct store_filter *ret_filter, struct err *err)
{
    const json_t *limit = json_object_get(params, "limit");
    const json_t *user = json_object_get(params, "user");
    struct store_filter filter = {
        .after = json_integer_value(json_object_get(params, "cursor")),
        .limit = limit != NULL ? json_integer_value(limit) : LIST_DEFAULT,
        .uid = user != NULL ? json_integer_value(user) : -1,
    };
    if (filter.limit < 1 || filter.limit > LIST_MAX)
        return method_refuse(err, params, "limit", "1 to %d", LIST_MAX);
    if (user != NULL && filter.uid < 0)
        return method_refuse(err, params, "user", "a uid, at least 0");
    int rc = read_states(json_object_get(params, "states"), &filter.states, err);
    if (rc == 0)
        *ret_filter = filter;
    return rc;
}

int list_call(struct daemon *daemon, struct call *call, struct err *err)
{
    struct store_filter filter;
    int rc = read_filter(call->request.params, &filter, err);
    if (rc != 0)
        return rc;
    struct list_request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    request->base = (struct store_request){.kind = STORE_READ, .run = list_run, .done = list_done};
    request->daemon = daemon;
    request->call = call;
    request->filter = filter;
    store_thread_submit(daemon->store, &request->base);
    return 0;
}

/* ── job.show ── */

struct show_request {
    struct store_request base;
    struct daemon *daemon;
    struct call *call;
    int64_t id;
    struct job_record *record;
    json_t *document;
    json_t *history;
};

static int add_history(void *arg, struct job_transition *transition, struct err *err)
{
    int failed = json_array_append_new(arg, record_transition(transition));
    job_transition_done(transition);
    return failed == 0 ? 0 : err_set(err, ERR_NOMEM, "out of memory");
}

static int show_document(struct show_request *request, struct store *store, struct err *err)
{
    char *text;
    size_t size;
    int rc = store_get_document(store, request->id, &text, &size, err);
    if (rc != 0)
        return rc;
    rc = json_load(text, size, ERR_INTERNAL, &request->document, err);
    free(text);
    return rc;
}

static void show_clear(struct show_request *request)
{
    job_record_free(request->record);
    json_decref(request->document);
    json_decref(request->history);
    request->record = NULL;
    request->document = request->history = NULL;
}

static int show_run(struct store_request *base, struct store *store, struct err *err)
{
    struct show_request *request = (struct show_request *)base;
    show_clear(request);
    int rc = store_get_job(store, request->id, &request->record, err);
    if (rc != 0 || !peer_owns(&request->call->peer, request->record->uid))
        return rc;
    rc = show_document(request, store, err);
    if (rc == 0 && (request->history = json_array()) == NULL)
        rc = err_set(err, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = store_each_transition_of(store, request->id, add_history, request->history, err);
    return rc;
}

static void show_done(struct store_request *base, const struct err *err)
{
    struct show_request *request = (struct show_request *)base;
    if (err->code != 0) {
        call_fail(request->call, err);
    } else {
        json_t *record = query_record(request->daemon, request->record, &request->call->peer);
        if (request->history != NULL)
            record = json_put(record, "history", json_incref(request->history));
        if (request->document != NULL)
            record = json_put(record, "document", json_incref(request->document));
        call_reply(request->call, record);
    }
    show_clear(request);
    free(request);
}

int show_call(struct daemon *daemon, struct call *call, struct err *err)
{
    struct show_request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    request->base = (struct store_request){.kind = STORE_READ, .run = show_run, .done = show_done};
    request->daemon = daemon;
    request->call = call;
    request->id = json_integer_value(json_object_get(call->request.params, "id"));
    store_thread_submit(daemon->store, &request->base);
    return 0;
}
