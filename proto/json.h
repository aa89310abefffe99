/* json.h: strict JSON on top of jansson. No I/O; any thread. */
#ifndef PROTO_JSON_H
#define PROTO_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "proto/err.h"

/* Parses one document: UTF-8, no duplicate key, no NaN or Infinity, integers within int64, no NUL
 * in a string, nested at most LIMIT_DEPTH deep (checked before jansson recurses). *ret_root is a
 * new reference, of any type. Errors: `code` (ERR_PARSE or ERR_JOB_INVALID, the caller's choice)
 * with "line L, column C: …" in the message; ERR_NOMEM. */
int json_load(const char *text, size_t size, int code, json_t **ret_root, struct err *err);
/* The same with another bound on the nesting, for what carries a document inside. */
int json_load_nested(const char *text, size_t size, size_t depth, int code, json_t **ret_root,
                     struct err *err);

/* The document on one line without a newline (compact, keys in their order), to be freed with
 * free(); NULL without memory. Numbers are written in the shortest form that is read back equal
 * (jansson would write 0.05 as 0.050000000000000003); NaN and infinities, which JSON lacks, as
 * null. */
char *json_line(const json_t *root);
/* The same for people: indented by two, short arrays of numbers and strings on one line, a newline
 * at the end. */
char *json_pretty(const json_t *root);

/* Appends a new reference, taking it; returns the list. Of a NULL list or value the other is
 * released and NULL returned, so that a loop needs no check of its own. */
json_t *json_list_append(json_t *list, json_t *value);

/* The same for a key of an object. (json_pack's optional values, "s*", hide a failed allocation.)
 */
json_t *json_put(json_t *object, const char *key, json_t *value);

/* The known name nearest to `name` by edit distance (case apart), or NULL if none is near. */
const char *json_nearest(const char *name, const char *const *known, size_t n_known);

/* What was found, for a message: `the string "abc"`, `the number 3`, `an object`. Returns `buf`. */
const char *json_describe(const json_t *value, char buf[static 96]);

#endif
