/* statements.h: the SQL of store.h, and what its functions are made of. Private to store*.c. */
#ifndef DAEMON_STATEMENTS_H
#define DAEMON_STATEMENTS_H

#include <sqlite3.h>

#include "daemon/store.h"

#define COLUMNS                                                                                    \
    "id, uid, gid, state, reason, name, cwd, output, submitted_ns, started_ns, ended_ns, want, "   \
    "devices, report_offset, outcome, weights, progress, exit, confusion, losses, priority, "      \
    "time_limit_s, after_jobs, stop"
#define TRANSITION_COLUMNS "seq, job, time_ns, old, new, actor, reason"

#define STATEMENTS(X)                                                                              \
    X(BEGIN_READ, "BEGIN")                                                                         \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                              \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(SAVEPOINT, "SAVEPOINT request")                                                              \
    X(RELEASE, "RELEASE request")                                                                  \
    X(ROLLBACK_TO, "ROLLBACK TO request")                                                          \
    X(INSERT_JOB,                                                                                  \
      "INSERT INTO job (" COLUMNS ", key) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "                \
      "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)")       \
    X(UPDATE_JOB, "UPDATE job SET state = ?4, reason = ?5, output = ?8, started_ns = ?10, "        \
                  "ended_ns = ?11, devices = ?13, report_offset = ?14, outcome = ?15, "            \
                  "weights = ?16, progress = ?17, exit = ?18, confusion = ?19, losses = ?20, "     \
                  "priority = ?21, time_limit_s = ?22, stop = ?24 "                                \
                  "WHERE id = ?1")                                                                 \
    X(INSERT_DOCUMENT, "INSERT INTO document (job, text) VALUES (?1, ?2)")                         \
    X(INSERT_TRANSITION, "INSERT INTO transition (job, time_ns, old, new, actor, reason) "         \
                         "VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                        \
    X(FIND_KEY, "SELECT id FROM job WHERE uid = ?1 AND key = ?2")                                  \
    X(GET_JOB, "SELECT " COLUMNS " FROM job WHERE id = ?1")                                        \
    X(GET_BRIEF, "SELECT uid, state, exit FROM job WHERE id = ?1")                                 \
    X(GET_DOCUMENT, "SELECT text FROM document WHERE job = ?1")                                    \
    X(EACH_JOB, "SELECT " COLUMNS " FROM job WHERE id > ?1 AND (?2 < 0 OR uid = ?2) ORDER BY id")  \
    X(EACH_UNFINISHED, "SELECT " COLUMNS " FROM job WHERE ended_ns = 0 ORDER BY id")               \
    X(TRANSITIONS_OF, "SELECT " TRANSITION_COLUMNS " FROM transition WHERE job = ?1 ORDER BY seq") \
    X(TRANSITIONS_SINCE, "SELECT " TRANSITION_COLUMNS " FROM transition WHERE seq > ?1 "           \
                         "ORDER BY seq LIMIT ?2")                                                  \
    X(EACH_USE, "SELECT uid, devices, started_ns, ended_ns FROM job "                              \
                "WHERE ended_ns > ?1 AND started_ns > 0 AND ended_ns > 0 ORDER BY ended_ns")       \
    X(LAST_SEQ, "SELECT ifnull(max(seq), 0) FROM transition")                                      \
    X(COUNT_STATES, "SELECT state, count(*) FROM job GROUP BY state")                              \
    X(PUT_DRAIN, "INSERT OR REPLACE INTO drain (device, uid, reason) VALUES (?1, ?2, ?3)")         \
    X(DELETE_DRAIN, "DELETE FROM drain WHERE device = ?1")                                         \
    X(EACH_DRAIN, "SELECT device, uid, reason FROM drain ORDER BY device")

enum statement {
#define X(name, sql) STMT_##name,
    STATEMENTS(X)
#undef X
        STMT_COUNT
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *stmt[STMT_COUNT];
};

/* The database's own sentence. Returns ERR_IO or ERR_NOMEM. */
int store_fail(struct store *store, struct err *err);
/* The statement, reset and without bindings. */
int store_prepare(struct store *store, enum statement which, sqlite3_stmt **ret_stmt,
                  struct err *err);
/* Steps a statement that gives no rows, and resets it. */
int store_finish(struct store *store, sqlite3_stmt *stmt, struct err *err);
/* 1: there is a row; 0: no more; negative: an error. */
int store_row(struct store *store, sqlite3_stmt *stmt, struct err *err);
void store_bind_text(sqlite3_stmt *stmt, int at, const char *text); /* NULL binds NULL */

#endif
