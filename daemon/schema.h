/* schema.h: the database's shape and its versions. The store's thread (or before it runs). */
#ifndef DAEMON_SCHEMA_H
#define DAEMON_SCHEMA_H

#include <sqlite3.h>

#include "proto/err.h"

enum {
    SCHEMA_VERSION = 4,
    SCHEMA_APPLICATION = 0x74726e64, /* "trnd" in the file's header: this database is ours */
};

/* Checks a database, brings it from its version (0: new) to SCHEMA_VERSION in one transaction, and
 * sets WAL and synchronous=FULL. Errors, with the file unchanged: ERR_IO if it is damaged, of
 * another program, or of a newer traind. */
int schema_prepare(sqlite3 *db, struct err *err);

#endif
