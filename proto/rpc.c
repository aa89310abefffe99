/* rpc.c: JSON-RPC 2.0 messages, read strictly and written. */
#include "proto/rpc.h"

#include <stdlib.h>
#include <string.h>

#include "proto/json.h"
#include "proto/limits.h"

enum { KEPT_BYTES = 64 << 10 };

/* Moves what is left to the front and makes room for `more` bytes behind it. A buffer that a long
 * line has made large is not kept for the short ones after it. */
static int make_room(struct rpc_framer *framer, size_t more, struct err *err)
{
    if (framer->start > 0) {
        memmove(framer->buf, framer->buf + framer->start, framer->used - framer->start);
        framer->used -= framer->start;
        framer->whole -= framer->start;
        framer->start = 0;
    }
    if (framer->used == 0 && framer->size > KEPT_BYTES && more <= KEPT_BYTES)
        rpc_framer_done(framer);
    if (more <= framer->size - framer->used)
        return 0;
    size_t size = framer->size < 4096 ? 4096 : framer->size;
    while (size - framer->used < more)
        size *= 2;
    char *buf = realloc(framer->buf, size);
    if (buf == NULL)
        return err_set(err, ERR_NOMEM, "out of memory for a line");
    framer->buf = buf;
    framer->size = size;
    return 0;
}

int rpc_framer_feed(struct rpc_framer *framer, const char *data, size_t size, struct err *err)
{
    size_t line = framer->used - framer->whole; /* bytes of the unfinished line so far */
    size_t whole = 0;                           /* bytes of `data` up to its last '\n' */
    for (size_t i = 0; i < size; i = whole) {
        const char *newline = memchr(data + i, '\n', size - i);
        size_t end = newline != NULL ? (size_t)(newline - data) : size;
        if (line + (end - i) > LIMIT_LINE_BYTES)
            return err_set(err, ERR_PARSE, "a line is longer than %d bytes", LIMIT_LINE_BYTES);
        if (newline == NULL)
            break;
        whole = end + 1;
        line = 0;
    }
    int rc = make_room(framer, size, err);
    if (rc != 0)
        return rc;
    if (size > 0)
        memcpy(framer->buf + framer->used, data, size);
    if (whole > 0)
        framer->whole = framer->used + whole;
    framer->used += size;
    return 0;
}

bool rpc_framer_next(struct rpc_framer *framer, bool eof, const char **ret_line, size_t *ret_size)
{
    while (framer->start < framer->whole || (eof && framer->start < framer->used)) {
        const char *line = framer->buf + framer->start;
        size_t size = framer->used - framer->start;
        const char *newline = memchr(line, '\n', size);
        if (newline != NULL)
            size = (size_t)(newline - line);
        framer->start += size + (newline != NULL);
        if (framer->whole < framer->start)
            framer->whole = framer->start;
        if (size == 0 || (size == 1 && line[0] == '\r'))
            continue;
        *ret_line = line;
        *ret_size = size;
        return true;
    }
    return false;
}

void rpc_framer_done(struct rpc_framer *framer)
{
    free(framer->buf);
    *framer = (struct rpc_framer){0};
}

static int check_members(const json_t *root, struct err *err)
{
    static const char *const known[] = {"jsonrpc", "id", "method", "params"};
    enum { N = sizeof known / sizeof known[0] };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)root, key, value)
    {
        size_t i = 0;
        while (i < N && strcmp(key, known[i]) != 0)
            i++;
        if (i == N)
            return err_set(err, ERR_REQUEST,
                           "unknown member \"%.64s\"; a request has jsonrpc, id, method and params",
                           key);
    }
    return 0;
}

static int read_id(const json_t *root, json_t **ret_id, struct err *err)
{
    json_t *id = json_object_get(root, "id");
    if (id != NULL && !json_is_string(id) && !json_is_integer(id) && !json_is_null(id))
        return err_set(err, ERR_REQUEST, "id must be a string, an integer or null");
    if (json_is_string(id) && json_string_length(id) > LIMIT_NAME_BYTES)
        return err_set(err, ERR_REQUEST, "id is longer than %d bytes", LIMIT_NAME_BYTES);
    *ret_id = id;
    return 0;
}

static int read_request(struct rpc_request *request, struct err *err)
{
    const json_t *root = request->root;
    char found[96];
    if (json_is_array(root))
        return err_set(err, ERR_REQUEST, "batches are not supported; send one request a line");
    if (!json_is_object(root))
        return err_set(err, ERR_REQUEST, "a request must be an object, found %s",
                       json_describe(root, found));
    int rc = read_id(root, &request->id, err);
    if (rc == 0)
        rc = check_members(root, err);
    if (rc != 0)
        return rc;
    const char *version = json_string_value(json_object_get(root, "jsonrpc"));
    if (version == NULL || strcmp(version, "2.0") != 0)
        return err_set(err, ERR_REQUEST, "a request must have \"jsonrpc\": \"2.0\"");
    request->method = json_string_value(json_object_get(root, "method"));
    if (request->method == NULL)
        return err_set(err, ERR_REQUEST, "a request must have a \"method\", a string");
    json_t *params = json_object_get(root, "params");
    if (params != NULL && !json_is_null(params)) {
        if (!json_is_object(params))
            return err_set(err, ERR_PARAMS, "params must be an object, found %s",
                           json_describe(params, found));
        request->params = json_incref(params);
        return 0;
    }
    request->params = json_object();
    return request->params != NULL ? 0 : err_set(err, ERR_NOMEM, "out of memory for a request");
}

int rpc_request_parse(const char *line, size_t size, struct rpc_request *ret_request,
                      struct err *err)
{
    enum { ENVELOPE_DEPTH = 2 }; /* the request and its params */
    *ret_request = (struct rpc_request){0};
    int rc = json_load_nested(line, size, LIMIT_DEPTH + ENVELOPE_DEPTH, ERR_PARSE,
                              &ret_request->root, err);
    return rc != 0 ? rc : read_request(ret_request, err);
}

void rpc_request_done(struct rpc_request *request)
{
    json_decref(request->params);
    json_decref(request->root);
    *request = (struct rpc_request){0};
}

static json_t *message_new(void)
{
    return json_pack("{s:s}", "jsonrpc", "2.0");
}

static json_t *put_call(json_t *message, const char *method, json_t *params)
{
    message = json_put(message, "method", json_string(method));
    return params != NULL ? json_put(message, "params", json_incref(params)) : message;
}

static json_t *put_id(json_t *message, json_t *id)
{
    return json_put(message, "id", id != NULL ? json_incref(id) : json_null());
}

json_t *rpc_request_new(json_int_t id, const char *method, json_t *params)
{
    return put_call(json_put(message_new(), "id", json_integer(id)), method, params);
}

json_t *rpc_notification_new(const char *method, json_t *params)
{
    return put_call(message_new(), method, params);
}

json_t *rpc_result_new(json_t *id, json_t *result)
{
    return json_put(put_id(message_new(), id), "result",
                    result != NULL ? json_incref(result) : json_null());
}

json_t *rpc_error_new(json_t *id, const struct err *err)
{
    json_t *data = json_put(json_object(), "name", json_string(err_name(err->code)));
    if (err->path[0] != '\0')
        data = json_put(data, "path", json_string(err->path));
    json_t *error = json_put(json_object(), "code", json_integer(err_rpc_code(err->code)));
    error = json_put(error, "message", json_string(err->message));
    return json_put(put_id(message_new(), id), "error", json_put(error, "data", data));
}

int rpc_reply_parse(const json_t *reply, json_t **ret_result, struct err *err)
{
    json_t *result = json_object_get(reply, "result");
    if (result != NULL) {
        *ret_result = result;
        return 0;
    }
    const json_t *error = json_object_get(reply, "error");
    const json_t *data = json_object_get(error, "data");
    const char *message = json_string_value(json_object_get(error, "message"));
    const char *name = json_string_value(json_object_get(data, "name"));
    const char *path = json_string_value(json_object_get(data, "path"));
    if (message == NULL)
        return err_set(err, ERR_REQUEST, "the reply has neither a result nor an error");
    return err_at(err, name != NULL ? err_from_name(name) : ERR_INTERNAL, path != NULL ? path : "",
                  "%s", message);
}
