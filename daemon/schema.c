/* schema.c: see schema.h. A change of shape is one more row of `steps`; a row never changes. */
#include "daemon/schema.h"

#include <stdio.h>
#include <string.h>

/* `document` is a table of its own: updating a job's row must not rewrite megabytes. */
static const char step_1[] = "CREATE TABLE job ("
                             " id INTEGER PRIMARY KEY AUTOINCREMENT,"
                             " uid INTEGER NOT NULL,"
                             " gid INTEGER NOT NULL,"
                             " key TEXT,"
                             " state TEXT NOT NULL,"
                             " reason TEXT,"
                             " name TEXT NOT NULL,"
                             " cwd TEXT NOT NULL,"
                             " output TEXT NOT NULL,"
                             " submitted_ns INTEGER NOT NULL,"
                             " started_ns INTEGER NOT NULL,"
                             " ended_ns INTEGER NOT NULL,"
                             " want TEXT NOT NULL,"
                             " devices TEXT NOT NULL,"
                             " report_offset INTEGER NOT NULL,"
                             " outcome INTEGER NOT NULL,"
                             " weights TEXT,"
                             " progress TEXT,"
                             " exit TEXT,"
                             " confusion TEXT,"
                             " losses TEXT,"
                             " UNIQUE (uid, key)"
                             ") STRICT;"
                             "CREATE INDEX job_unfinished ON job (id) WHERE ended_ns = 0;"
                             "CREATE INDEX job_state ON job (state);"
                             "CREATE TABLE document ("
                             " job INTEGER PRIMARY KEY REFERENCES job (id),"
                             " text TEXT NOT NULL"
                             ") STRICT;"
                             "CREATE TABLE transition ("
                             " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
                             " job INTEGER NOT NULL REFERENCES job (id),"
                             " time_ns INTEGER NOT NULL,"
                             " old TEXT," /* NULL: submitted */
                             " new TEXT NOT NULL,"
                             " actor INTEGER," /* a uid; NULL: the daemon */
                             " reason TEXT"
                             ") STRICT;"
                             "CREATE INDEX transition_job ON transition (job);";

/* The queue: priority, time limit, dependencies (ids as JSON), why a job is asked to stop. */
static const char step_2[] = "ALTER TABLE job ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;"
                             "ALTER TABLE job ADD COLUMN time_limit_s INTEGER NOT NULL DEFAULT 0;"
                             "ALTER TABLE job ADD COLUMN after_jobs TEXT;"
                             "ALTER TABLE job ADD COLUMN stop INTEGER NOT NULL DEFAULT 0;";

/* All that the start reads of jobs that have ended (store_each_use). */
static const char step_3[] = "CREATE INDEX job_use ON job (ended_ns, started_ns, uid, devices)"
                             " WHERE started_ns > 0 AND ended_ns > 0;";

static const char step_4[] = "CREATE TABLE drain ("
                             " device TEXT PRIMARY KEY,"
                             " uid INTEGER NOT NULL,"
                             " reason TEXT NOT NULL"
                             ") STRICT;";

static const char *const steps[SCHEMA_VERSION] = {step_1, step_2, step_3, step_4};

static int fail(sqlite3 *db, struct err *err)
{
    return err_set(err, ERR_IO, "%s", sqlite3_errmsg(db));
}

static int run(sqlite3 *db, const char *sql, struct err *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(db, err);
}

static int read_integer(sqlite3 *db, const char *sql, int *ret_value, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW)
        rc = fail(db, err);
    else
        *ret_value = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    return rc;
}

/* What the file is, before anything in it is touched. */
static int identify(sqlite3 *db, int *ret_version, struct err *err)
{
    int version = 0, application = 0, objects = 0;
    int rc = read_integer(db, "PRAGMA user_version", &version, err);
    if (rc == 0)
        rc = read_integer(db, "PRAGMA application_id", &application, err);
    if (rc == 0)
        rc = read_integer(db, "SELECT count(*) FROM sqlite_schema", &objects, err);
    if (rc != 0)
        return rc;
    if (application != SCHEMA_APPLICATION && (objects > 0 || version != 0))
        return err_set(err, ERR_IO, "this is the database of another program");
    if (version > SCHEMA_VERSION)
        return err_set(
            err, ERR_IO,
            "its schema has version %d, but this traind knows versions up to %d: a newer "
            "traind has used it",
            version, SCHEMA_VERSION);
    *ret_version = version;
    return 0;
}

static int migrate(sqlite3 *db, struct err *err)
{
    int version = 0;
    int rc = identify(db, &version, err);
    if (rc != 0 || version == SCHEMA_VERSION)
        return rc;
    rc = run(db, "BEGIN IMMEDIATE", err);
    for (int i = version; rc == 0 && i < SCHEMA_VERSION; i++)
        rc = run(db, steps[i], err);
    char sql[128];
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d; PRAGMA application_id = %d; COMMIT",
             SCHEMA_VERSION, SCHEMA_APPLICATION);
    if (rc == 0)
        rc = run(db, sql, err);
    if (rc != 0)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

static int pragma(sqlite3 *db, const char *sql, const char *want, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        rc = fail(db, err);
    else if (sqlite3_step(stmt) == SQLITE_ROW) {
        const char *got = (const char *)sqlite3_column_text(stmt, 0);
        if (want != NULL && (got == NULL || strcmp(got, want) != 0))
            rc = err_set(err, ERR_IO, "%s says \"%s\"", sql, got != NULL ? got : "");
    } else if (want != NULL)
        rc = fail(db, err);
    sqlite3_finalize(stmt);
    return rc;
}

/* The check comes first and is read-only: a damaged file is kept as evidence. */
int schema_prepare(sqlite3 *db, struct err *err)
{
    int rc = pragma(db, "PRAGMA quick_check(1)", "ok", err);
    if (rc == 0)
        rc = migrate(db, err);
    if (rc == 0)
        rc = pragma(db, "PRAGMA journal_mode = WAL", "wal", err);
    if (rc == 0)
        rc = pragma(db, "PRAGMA synchronous = FULL", NULL, err);
    if (rc == 0)
        rc = pragma(db, "PRAGMA foreign_keys = ON", NULL, err);
    return rc;
}
