/* rpc.h: JSON-RPC 2.0, one object a line. Pure: bytes in, messages out; no I/O. */
#ifndef PROTO_RPC_H
#define PROTO_RPC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/err.h"

/* Splits a byte stream into lines. Zero-initialise; rpc_framer_done frees. */
struct rpc_framer {
    char *buf;
    size_t size, used;   /* allocated; filled */
    size_t start, whole; /* the next line; the end of the last whole line */
};
/* Appends bytes. Errors: ERR_PARSE when a line grows beyond LIMIT_LINE_BYTES; ERR_NOMEM. */
int rpc_framer_feed(struct rpc_framer *framer, const char *data, size_t size, struct err *err);
/* The next whole line without its '\n', valid until the next feed; false when there is none. At
 * `eof` a last line without '\n' counts. Empty lines are skipped. */
bool rpc_framer_next(struct rpc_framer *framer, bool eof, const char **ret_line, size_t *ret_size);
void rpc_framer_done(struct rpc_framer *framer);

struct rpc_request {
    json_t *id;         /* a string, an integer or null; NULL: a notification */
    const char *method; /* lives in `root` */
    json_t *params;     /* an object, never NULL (absent and null are {}) */
    json_t *root;
};
/* A document inside params may itself be LIMIT_DEPTH deep. Errors: ERR_PARSE, ERR_REQUEST (batches
 * are not supported, and it says so), ERR_PARAMS (params not an object), ERR_NOMEM. *ret_request is
 * always set and to be given to rpc_request_done: after ERR_REQUEST and ERR_PARAMS its id is there
 * where it could be read (the reply echoes it). */
int rpc_request_parse(const char *line, size_t size, struct rpc_request *ret_request,
                      struct err *err);
void rpc_request_done(struct rpc_request *request);

/* New references; NULL without memory. `result` and `params` are borrowed; `id` NULL is written as
 * null. */
json_t *rpc_request_new(json_int_t id, const char *method, json_t *params);
json_t *rpc_notification_new(const char *method, json_t *params);
json_t *rpc_result_new(json_t *id, json_t *result);
/* {"code", "message", "data": {"name", "path"?}} */
json_t *rpc_error_new(json_t *id, const struct err *err);

/* For a client: fills `err` from an error reply and returns its code; 0 and *ret_result (borrowed)
 * for a result. */
int rpc_reply_parse(const json_t *reply, json_t **ret_result, struct err *err);

#endif
