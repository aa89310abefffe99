/* store_drain.c: the drained devices of store.h. */
#include "daemon/statements.h"

int store_put_drain(struct store *store, const char *device, uid_t uid, const char *reason,
                    struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_PUT_DRAIN, &stmt, err);
    if (rc != 0)
        return rc;
    store_bind_text(stmt, 1, device);
    sqlite3_bind_int64(stmt, 2, uid);
    store_bind_text(stmt, 3, reason);
    return store_finish(store, stmt, err);
}

int store_delete_drain(struct store *store, const char *device, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_DELETE_DRAIN, &stmt, err);
    if (rc != 0)
        return rc;
    store_bind_text(stmt, 1, device);
    return store_finish(store, stmt, err);
}

int store_each_drain(struct store *store, store_drain_fn *fn, void *arg, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_prepare(store, STMT_EACH_DRAIN, &stmt, err);
    if (rc != 0)
        return rc;
    while ((rc = store_row(store, stmt, err)) == 1) {
        rc = fn(arg, (const char *)sqlite3_column_text(stmt, 0),
                (uid_t)sqlite3_column_int64(stmt, 1), (const char *)sqlite3_column_text(stmt, 2),
                err);
        if (rc != 0)
            break;
    }
    sqlite3_reset(stmt);
    return rc;
}
