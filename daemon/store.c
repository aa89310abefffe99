/* store.c: see store.h. Statements are prepared once, when they are first used; each function
 * binds, steps and resets one of them. */
#include "daemon/store.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/schema.h"
#include "daemon/statements.h"

static const char *const statements[STMT_COUNT] = {
#define X(name, sql) sql,
    STATEMENTS(X)
#undef X
};

int store_fail(struct store *store, struct err *err)
{
    int code = sqlite3_errcode(store->db) == SQLITE_NOMEM ? ERR_NOMEM : ERR_IO;
    return err_set(err, code, "the database: %s", sqlite3_errmsg(store->db));
}

int store_prepare(struct store *store, enum statement which, sqlite3_stmt **ret_stmt,
                  struct err *err)
{
    sqlite3_stmt **stmt = &store->stmt[which];
    if (*stmt == NULL && sqlite3_prepare_v3(store->db, statements[which], -1,
                                            SQLITE_PREPARE_PERSISTENT, stmt, NULL) != SQLITE_OK)
        return store_fail(store, err);
    sqlite3_reset(*stmt);
    sqlite3_clear_bindings(*stmt);
    *ret_stmt = *stmt;
    return 0;
}

int store_finish(struct store *store, sqlite3_stmt *stmt, struct err *err)
{
    int rc = sqlite3_step(stmt) == SQLITE_DONE ? 0 : store_fail(store, err);
    sqlite3_reset(stmt);
    return rc;
}

static int run(struct store *store, enum statement which, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, which, &stmt, err);
    return rc != 0 ? rc : store_finish(store, stmt, err);
}

int store_open(const char *path, struct store **ret_store, struct err *err)
{
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc =
        sqlite3_open_v2(path, &store->db, flags, NULL) == SQLITE_OK ? 0 : store_fail(store, err);
    if (rc == 0)
        rc = schema_prepare(store->db, err);
    if (rc != 0) {
        err_context(err, "%s", path);
        store_close(store);
        return rc;
    }
    *ret_store = store;
    return 0;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < STMT_COUNT; i++)
        sqlite3_finalize(store->stmt[i]);
    sqlite3_close(store->db);
    free(store);
}

int store_begin(struct store *store, bool write, struct err *err)
{
    return run(store, write ? STMT_BEGIN_WRITE : STMT_BEGIN_READ, err);
}

int store_commit(struct store *store, struct err *err)
{
    return run(store, STMT_COMMIT, err);
}

void store_rollback(struct store *store)
{
    struct err ignored = ERR_INIT; /* SQLite has rolled back already where it had to */
    run(store, STMT_ROLLBACK, &ignored);
}

int store_savepoint(struct store *store, struct err *err)
{
    return run(store, STMT_SAVEPOINT, err);
}

int store_release(struct store *store, bool keep, struct err *err)
{
    int rc = keep ? 0 : run(store, STMT_ROLLBACK_TO, err);
    return rc != 0 ? rc : run(store, STMT_RELEASE, err);
}

void store_bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
    sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT); /* NULL binds NULL */
}

static void bind_devices(sqlite3_stmt *stmt, int at, const struct devlist *list)
{
    char text[LIMIT_DEVICES * 32];
    store_bind_text(stmt, at, devlist_format(list, text, sizeof text));
}

static int bind_json(sqlite3_stmt *stmt, int at, const json_t *value, struct err *err)
{
    if (value == NULL)
        return 0;
    char *text = json_dumps(value, JSON_COMPACT);
    if (text == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    sqlite3_bind_text(stmt, at, text, -1, free);
    return 0;
}

/* The parameters of INSERT_JOB; UPDATE_JOB uses the same numbers for those that it has. */
static int bind_record(sqlite3_stmt *stmt, const struct job_record *record, struct err *err)
{
    if (record->id != 0)
        sqlite3_bind_int64(stmt, 1, record->id);
    sqlite3_bind_int64(stmt, 2, record->uid);
    sqlite3_bind_int64(stmt, 3, record->gid);
    store_bind_text(stmt, 4, state_name(record->state));
    store_bind_text(stmt, 5, record->reason);
    store_bind_text(stmt, 6, record->name);
    store_bind_text(stmt, 7, record->cwd);
    store_bind_text(stmt, 8, record->output);
    sqlite3_bind_int64(stmt, 9, record->submitted_ns);
    sqlite3_bind_int64(stmt, 10, record->started_ns);
    sqlite3_bind_int64(stmt, 11, record->ended_ns);
    bind_devices(stmt, 12, &record->want);
    bind_devices(stmt, 13, &record->devices);
    sqlite3_bind_int64(stmt, 14, record->report_offset);
    sqlite3_bind_int(stmt, 15, (int)record->outcome);
    store_bind_text(stmt, 16, record->weights);
    sqlite3_bind_int64(stmt, 21, record->priority);
    sqlite3_bind_int64(stmt, 22, record->time_limit_s);
    sqlite3_bind_int(stmt, 24, (int)record->stop);
    const struct {
        int at;
        const json_t *value;
    } values[] = {{17, record->progress},
                  {18, record->exit},
                  {19, record->confusion},
                  {20, record->losses},
                  {23, record->after}};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof values / sizeof values[0]; i++)
        rc = bind_json(stmt, values[i].at, values[i].value, err);
    return rc;
}

int store_insert_job(struct store *store, struct job_record *record, const char *key,
                     struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_INSERT_JOB, &stmt, err);
    if (rc == 0)
        rc = bind_record(stmt, record, err);
    if (rc != 0)
        return rc;
    store_bind_text(stmt, 25, key);
    rc = store_finish(store, stmt, err);
    if (rc == 0)
        record->id = sqlite3_last_insert_rowid(store->db);
    return rc;
}

int store_insert_document(struct store *store, int64_t id, const char *text, size_t size,
                          struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_INSERT_DOCUMENT, &stmt, err);
    if (rc != 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_text64(stmt, 2, text, size, SQLITE_STATIC, SQLITE_UTF8);
    rc = store_finish(store, stmt, err);
    sqlite3_clear_bindings(stmt);
    return rc;
}

int store_update_job(struct store *store, const struct job_record *record, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_UPDATE_JOB, &stmt, err);
    if (rc == 0)
        rc = bind_record(stmt, record, err);
    return rc != 0 ? rc : store_finish(store, stmt, err);
}

int store_insert_transition(struct store *store, struct job_transition *transition, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_INSERT_TRANSITION, &stmt, err);
    if (rc != 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, transition->id);
    sqlite3_bind_int64(stmt, 2, transition->time_ns);
    if (transition->from != STATE_COUNT)
        store_bind_text(stmt, 3, state_name(transition->from));
    store_bind_text(stmt, 4, state_name(transition->to));
    if (transition->by_user)
        sqlite3_bind_int64(stmt, 5, transition->uid);
    store_bind_text(stmt, 6, transition->reason);
    rc = store_finish(store, stmt, err);
    if (rc == 0)
        transition->seq = sqlite3_last_insert_rowid(store->db);
    return rc;
}

/* Steps to the only row: 1, 0 if there is none, or an error. */
int store_row(struct store *store, sqlite3_stmt *stmt, struct err *err)
{
    int rc = sqlite3_step(stmt);
    return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : store_fail(store, err);
}

int store_find_key(struct store *store, uid_t uid, const char *key, int64_t *ret_id,
                   struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_FIND_KEY, &stmt, err);
    if (rc != 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, uid);
    store_bind_text(stmt, 2, key);
    rc = store_row(store, stmt, err);
    if (rc >= 0)
        *ret_id = rc == 1 ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static bool column_string(sqlite3_stmt *stmt, int at, char **ret_text)
{
    const char *text = (const char *)sqlite3_column_text(stmt, at);
    *ret_text = text != NULL ? strdup(text) : NULL;
    return *ret_text != NULL || sqlite3_column_type(stmt, at) == SQLITE_NULL;
}

static bool column_json(sqlite3_stmt *stmt, int at, json_t **ret_value)
{
    const char *text = (const char *)sqlite3_column_text(stmt, at);
    *ret_value = text != NULL ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    return *ret_value != NULL || sqlite3_column_type(stmt, at) == SQLITE_NULL;
}

static bool column_devices(sqlite3_stmt *stmt, int at, struct devlist *ret_list)
{
    struct err ignored = ERR_INIT;
    const char *text = (const char *)sqlite3_column_text(stmt, at);
    return text != NULL && devlist_parse(text, ret_list, &ignored) == 0;
}

static enum job_state column_state(sqlite3_stmt *stmt, int at)
{
    const char *state = (const char *)sqlite3_column_text(stmt, at);
    return state_from_name(state != NULL ? state : "");
}

enum { COLUMN_STATE = 3 };

static bool read_record(sqlite3_stmt *stmt, struct job_record *record)
{
    record->id = sqlite3_column_int64(stmt, 0);
    record->uid = (uid_t)sqlite3_column_int64(stmt, 1);
    record->gid = (gid_t)sqlite3_column_int64(stmt, 2);
    record->state = column_state(stmt, COLUMN_STATE);
    record->submitted_ns = sqlite3_column_int64(stmt, 8);
    record->started_ns = sqlite3_column_int64(stmt, 9);
    record->ended_ns = sqlite3_column_int64(stmt, 10);
    record->report_offset = sqlite3_column_int64(stmt, 13);
    record->outcome = (enum job_outcome)sqlite3_column_int(stmt, 14);
    record->priority = sqlite3_column_int64(stmt, 20);
    record->time_limit_s = sqlite3_column_int64(stmt, 21);
    record->stop = (enum job_stop)sqlite3_column_int(stmt, 23);
    bool ok = record->state != STATE_COUNT;
    ok &= column_string(stmt, 4, &record->reason);
    ok &= column_string(stmt, 5, &record->name);
    ok &= column_string(stmt, 6, &record->cwd);
    ok &= column_string(stmt, 7, &record->output);
    ok &= column_devices(stmt, 11, &record->want);
    ok &= column_devices(stmt, 12, &record->devices);
    ok &= column_string(stmt, 15, &record->weights);
    ok &= column_json(stmt, 16, &record->progress);
    ok &= column_json(stmt, 17, &record->exit);
    ok &= column_json(stmt, 18, &record->confusion);
    ok &= column_json(stmt, 19, &record->losses);
    ok &= column_json(stmt, 22, &record->after);
    return ok;
}

static int unreadable(int64_t id, struct err *err)
{
    return err_set(err, ERR_IO, "the database: the row of job %lld cannot be read", (long long)id);
}

static int new_record(sqlite3_stmt *stmt, struct job_record **ret_record, struct err *err)
{
    struct job_record *record = calloc(1, sizeof *record);
    if (record == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    if (!read_record(stmt, record)) {
        int rc = unreadable(record->id, err);
        job_record_free(record);
        return rc;
    }
    *ret_record = record;
    return 0;
}

/* The one row of a statement about a job: 1, or an error. */
static int find_job(struct store *store, enum statement which, int64_t id, sqlite3_stmt **ret_stmt,
                    struct err *err)
{
    int rc = store_prepare(store, which, ret_stmt, err);
    if (rc != 0)
        return rc;
    sqlite3_bind_int64(*ret_stmt, 1, id);
    rc = store_row(store, *ret_stmt, err);
    return rc != 0 ? rc : err_set(err, ERR_NOT_FOUND, "there is no job %lld", (long long)id);
}

int store_get_job(struct store *store, int64_t id, struct job_record **ret_record, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = find_job(store, STMT_GET_JOB, id, &stmt, err);
    if (rc == 1)
        rc = new_record(stmt, ret_record, err);
    sqlite3_reset(stmt);
    return rc;
}

int store_get_brief(struct store *store, int64_t id, struct job_brief *ret_brief, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = find_job(store, STMT_GET_BRIEF, id, &stmt, err);
    if (rc == 1) {
        struct job_brief brief = {
            .id = id, .uid = (uid_t)sqlite3_column_int64(stmt, 0), .state = column_state(stmt, 1)};
        rc = 0;
        if (brief.state == STATE_COUNT || !column_json(stmt, 2, &brief.exit))
            rc = unreadable(id, err);
        else
            *ret_brief = brief;
    }
    sqlite3_reset(stmt);
    return rc;
}

int store_get_document(struct store *store, int64_t id, char **ret_text, size_t *ret_size,
                       struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = find_job(store, STMT_GET_DOCUMENT, id, &stmt, err);
    if (rc == 1) {
        rc = 0;
        if (column_string(stmt, 0, ret_text))
            *ret_size = (size_t)sqlite3_column_bytes(stmt, 0);
        else
            rc = err_set(err, ERR_NOMEM, "out of memory");
    }
    sqlite3_reset(stmt);
    return rc;
}

/* Every row of a statement that selects COLUMNS; `states` and `limit` as in store_filter. */
static int walk_jobs(struct store *store, sqlite3_stmt *stmt, unsigned states, int64_t limit,
                     store_job_fn *fn, void *arg, struct err *err)
{
    int rc = 0;
    while (limit > 0 && (rc = store_row(store, stmt, err)) == 1) {
        struct job_record *record;
        /* Looked at first: most rows of a long history are not asked for. */
        if (states != 0 && (states >> column_state(stmt, COLUMN_STATE) & 1) == 0)
            continue;
        rc = new_record(stmt, &record, err);
        if (rc != 0)
            break;
        limit--;
        rc = fn(arg, record, err);
        if (rc != 0)
            break;
    }
    sqlite3_reset(stmt);
    return rc;
}

int store_each_job(struct store *store, const struct store_filter *filter, store_job_fn *fn,
                   void *arg, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_EACH_JOB, &stmt, err);
    if (rc != 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, filter->after);
    sqlite3_bind_int64(stmt, 2, filter->uid);
    return walk_jobs(store, stmt, filter->states, filter->limit, fn, arg, err);
}

int store_each_unfinished(struct store *store, store_job_fn *fn, void *arg, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_EACH_UNFINISHED, &stmt, err);
    return rc != 0 ? rc : walk_jobs(store, stmt, 0, INT64_MAX, fn, arg, err);
}

static int read_transition(sqlite3_stmt *stmt, struct job_transition *row, struct err *err)
{
    const char *from = (const char *)sqlite3_column_text(stmt, 3);
    const char *to = (const char *)sqlite3_column_text(stmt, 4);
    *row = (struct job_transition){
        .seq = sqlite3_column_int64(stmt, 0),
        .id = sqlite3_column_int64(stmt, 1),
        .time_ns = sqlite3_column_int64(stmt, 2),
        .from = state_from_name(from != NULL ? from : ""),
        .to = state_from_name(to != NULL ? to : ""),
        .by_user = sqlite3_column_type(stmt, 5) != SQLITE_NULL,
        .uid = (uid_t)sqlite3_column_int64(stmt, 5),
    };
    if (row->to == STATE_COUNT)
        return err_set(err, ERR_IO, "the database: row %lld of the history cannot be read",
                       (long long)row->seq);
    return column_string(stmt, 6, &row->reason) ? 0 : err_set(err, ERR_NOMEM, "out of memory");
}

static int walk_transitions(struct store *store, sqlite3_stmt *stmt, store_transition_fn *fn,
                            void *arg, struct err *err)
{
    int rc;
    while ((rc = store_row(store, stmt, err)) == 1) {
        struct job_transition row;
        rc = read_transition(stmt, &row, err);
        if (rc == 0)
            rc = fn(arg, &row, err);
        if (rc != 0)
            break;
    }
    sqlite3_reset(stmt);
    return rc;
}

int store_each_transition_of(struct store *store, int64_t id, store_transition_fn *fn, void *arg,
                             struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_TRANSITIONS_OF, &stmt, err);
    if (rc != 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, id);
    return walk_transitions(store, stmt, fn, arg, err);
}

int store_each_transition_since(struct store *store, int64_t since, int64_t limit,
                                store_transition_fn *fn, void *arg, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_TRANSITIONS_SINCE, &stmt, err);
    if (rc != 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, since);
    sqlite3_bind_int64(stmt, 2, limit);
    return walk_transitions(store, stmt, fn, arg, err);
}

int store_each_use(struct store *store, int64_t since_ns, store_use_fn *fn, void *arg,
                   struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    struct devlist held = {0};
    int rc = store_prepare(store, STMT_EACH_USE, &stmt, err);
    if (rc != 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, since_ns > 0 ? since_ns : 1); /* 0: it has not ended */
    while ((rc = store_row(store, stmt, err)) == 1) {
        column_devices(stmt, 1, &held);
        struct store_use use = {(uid_t)sqlite3_column_int64(stmt, 0), held.n,
                                sqlite3_column_int64(stmt, 2), sqlite3_column_int64(stmt, 3)};
        if ((rc = fn(arg, &use, err)) != 0)
            break;
    }
    sqlite3_reset(stmt);
    return rc;
}

int store_last_seq(struct store *store, int64_t *ret_seq, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_LAST_SEQ, &stmt, err);
    if (rc != 0)
        return rc;
    rc = store_row(store, stmt, err);
    if (rc == 1)
        *ret_seq = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

int store_count_states(struct store *store, int64_t ret_count[STATE_COUNT], struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_COUNT_STATES, &stmt, err);
    int64_t count[STATE_COUNT] = {0};
    if (rc != 0)
        return rc;
    while ((rc = store_row(store, stmt, err)) == 1) {
        enum job_state state = column_state(stmt, 0);
        if (state != STATE_COUNT)
            count[state] = sqlite3_column_int64(stmt, 1);
    }
    sqlite3_reset(stmt);
    if (rc == 0)
        memcpy(ret_count, count, sizeof count);
    return rc;
}
