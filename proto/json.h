/* json.h: strict JSON on top of jansson. No I/O; any thread. */
#ifndef PROTO_JSON_H
#define PROTO_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "proto/err.h"

/* Parses one document: UTF-8, no duplicate key, no NaN or Infinity, integers within int64, nested
 * at most LIMIT_DEPTH deep (checked before jansson recurses). *ret_root is a new reference. Errors:
 * `code` (ERR_PARSE or ERR_JOB_INVALID, the caller's choice) with "line L, column C: …" in the
 * message; ERR_NOMEM. */
int json_load(const char *text, size_t size, int code, json_t **ret_root, struct err *err);

/* The document on one line without a newline (compact, keys in their order), to be freed with
 * free(); NULL without memory. Numbers are written so that they are read back equal. */
char *json_line(const json_t *root);

/* The known name nearest to `name` by edit distance, or NULL if none is near. */
const char *json_nearest(const char *name, const char *const *known, size_t n_known);

#endif
