#include <stdlib.h>
#include <string.h>

#include "proto/json.h"
#include "proto/limits.h"
#include "proto/rpc.h"
#include "tests/lib/checks.h"

/* Feeds `text` in pieces of `piece` bytes; the lines come back joined by '|'. */
static void split(const char *text, size_t piece, char *ret_joined)
{
    struct rpc_framer framer = {0};
    struct err err = ERR_INIT;
    const char *line;
    size_t size, length = strlen(text);
    ret_joined[0] = '\0';
    for (size_t i = 0; i <= length; i += piece) {
        size_t n = length - i < piece ? length - i : piece;
        ck_assert_int_eq(rpc_framer_feed(&framer, text + i, n, &err), 0);
        while (rpc_framer_next(&framer, i + piece > length, &line, &size)) {
            strncat(ret_joined, line, size);
            strcat(ret_joined, "|");
        }
    }
    rpc_framer_done(&framer);
}

START_TEST(lines_come_whole)
{
    char joined[200];
    for (size_t piece = 1; piece < 12; piece++) {
        split("one\n\ntwo and more\n\r\nthree", piece, joined);
        ck_assert_str_eq(joined, "one|two and more|three|");
        split("one\n", piece, joined);
        ck_assert_str_eq(joined, "one|");
        split("\n\n", piece, joined);
        ck_assert_str_eq(joined, "");
    }
}
END_TEST

START_TEST(half_a_line_waits)
{
    struct rpc_framer framer = {0};
    struct err err = ERR_INIT;
    const char *line;
    size_t size;
    ck_assert_int_eq(rpc_framer_feed(&framer, "half", 4, &err), 0);
    ck_assert(!rpc_framer_next(&framer, false, &line, &size));
    ck_assert(rpc_framer_next(&framer, true, &line, &size));
    ck_assert_uint_eq(size, 4);
    ck_assert(!rpc_framer_next(&framer, true, &line, &size));
    rpc_framer_done(&framer);
}
END_TEST

START_TEST(long_lines_are_refused)
{
    size_t piece = 1 << 20;
    char *text = malloc(piece);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', piece);
    struct rpc_framer framer = {0};
    struct err err = ERR_INIT;
    const char *line;
    size_t size, fed = 0;
    for (; fed < LIMIT_LINE_BYTES; fed += piece)
        ck_assert_int_eq(rpc_framer_feed(&framer, text, piece, &err), 0);
    ck_assert_int_eq(rpc_framer_feed(&framer, "\n", 1, &err), 0); /* exactly the limit */
    ck_assert(rpc_framer_next(&framer, false, &line, &size));
    ck_assert_uint_eq(size, LIMIT_LINE_BYTES);
    ck_assert_int_eq(rpc_framer_feed(&framer, "short\n", 6, &err), 0);
    ck_assert_uint_le(framer.size, 1 << 16); /* the large buffer is not kept */
    ck_assert(rpc_framer_next(&framer, false, &line, &size));
    ck_assert_uint_eq(size, 5);
    for (fed = 0; fed < LIMIT_LINE_BYTES; fed += piece)
        ck_assert_int_eq(rpc_framer_feed(&framer, text, piece, &err), 0);
    ck_assert_int_eq(rpc_framer_feed(&framer, "x\n", 2, &err), ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(err.message, "8388608"));
    rpc_framer_done(&framer);
    free(text);
}
END_TEST

static const struct {
    const char *line;
    int code;
    const char *fragment;
    const char *id; /* as JSON; NULL: none */
} requests[] = {
    {"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"a\"}", 0, NULL, "1"},
    {"{\"jsonrpc\": \"2.0\", \"id\": \"x\", \"method\": \"a\", \"params\": null}", 0, NULL,
     "\"x\""},
    {"{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"a\", \"params\": {}}", 0, NULL, "null"},
    {"{\"jsonrpc\": \"2.0\", \"method\": \"a\", \"params\": {}}", 0, NULL, NULL},
    {"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\"", ERR_PARSE, "line 1, column ", NULL},
    {"hello", ERR_PARSE, "line 1, column ", NULL},
    {"[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"a\"}]", ERR_REQUEST,
     "batches are not supported", NULL},
    {"[]", ERR_REQUEST, "batches are not supported", NULL},
    {"7", ERR_REQUEST, "must be an object, found the number 7", NULL},
    {"{}", ERR_REQUEST, "\"jsonrpc\": \"2.0\"", NULL},
    {"{\"jsonrpc\": 2.0, \"id\": 1, \"method\": \"a\"}", ERR_REQUEST, "\"2.0\"", "1"},
    {"{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"a\"}", ERR_REQUEST, "\"2.0\"", "1"},
    {"{\"jsonrpc\": \"2.0\", \"id\": 1.5, \"method\": \"a\"}", ERR_REQUEST, "id must be", NULL},
    {"{\"jsonrpc\": \"2.0\", \"id\": [], \"method\": \"a\"}", ERR_REQUEST, "id must be", NULL},
    {"{\"jsonrpc\": \"2.0\", \"id\": 1}", ERR_REQUEST, "\"method\"", "1"},
    {"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": 3}", ERR_REQUEST, "\"method\"", "1"},
    {"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"a\", \"parms\": {}}", ERR_REQUEST,
     "unknown member \"parms\"", "1"},
    {"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"a\", \"params\": [1]}", ERR_PARAMS,
     "params must be an object, found a list of 1", "1"},
    {"{\"jsonrpc\": \"2.0\", \"id\": 1, \"id\": 2, \"method\": \"a\"}", ERR_PARSE, "duplicate",
     NULL},
};

START_TEST(requests_are_read_strictly)
{
    struct rpc_request request;
    struct err err = ERR_INIT;
    int rc = rpc_request_parse(requests[_i].line, strlen(requests[_i].line), &request, &err);
    ck_assert_msg(rc == requests[_i].code, "%d: %s", rc, err.message);
    if (rc == 0) {
        ck_assert_str_eq(request.method, "a");
        ck_assert(json_is_object(request.params));
    } else {
        ck_assert_msg(strstr(err.message, requests[_i].fragment) != NULL, "%s", err.message);
    }
    if (requests[_i].id == NULL) {
        ck_assert_ptr_null(request.id);
    } else {
        json_t *id = json_loads(requests[_i].id, JSON_DECODE_ANY, NULL);
        ck_assert(json_equal(id, request.id));
        json_decref(id);
    }
    rpc_request_done(&request);
}
END_TEST

/* The document's depth is counted from its own root. */
START_TEST(a_request_may_carry_a_deep_document)
{
    char line[600];
    for (int extra = 0; extra < 2; extra++) {
        strcpy(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"job\":");
        size_t size = strlen(line);
        size_t depth = LIMIT_DEPTH + (size_t)extra;
        memset(line + size, '[', depth);
        memset(line + size + depth, ']', depth);
        memcpy(line + size + 2 * depth, "}}", 2);
        struct rpc_request request;
        struct err err = ERR_INIT;
        int rc = rpc_request_parse(line, size + 2 * depth + 2, &request, &err);
        ck_assert_int_eq(rc, extra == 0 ? 0 : ERR_PARSE);
        rpc_request_done(&request);
    }
}
END_TEST

static void check_line(json_t *message, const char *expected)
{
    char *line = json_line(message);
    ck_assert_str_eq(line, expected);
    free(line);
    json_decref(message);
}

START_TEST(messages_are_written)
{
    json_t *params = json_pack("{s:i}", "id", 7), *id = json_integer(3);
    struct err err;
    check_line(rpc_request_new(3, "job.show", params),
               "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"job.show\",\"params\":{\"id\":7}}");
    check_line(rpc_request_new(3, "server.info", NULL),
               "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"server.info\"}");
    check_line(rpc_notification_new("job.event", params),
               "{\"jsonrpc\":\"2.0\",\"method\":\"job.event\",\"params\":{\"id\":7}}");
    check_line(rpc_result_new(id, params), "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"id\":7}}");
    err_at(&err, ERR_JOB_INVALID, "/model", "wrong");
    check_line(rpc_error_new(id, &err),
               "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32010,\"message\":\"wrong\","
               "\"data\":{\"name\":\"job.invalid\",\"path\":\"/model\"}}}");
    err_set(&err, ERR_PARSE, "no JSON");
    check_line(
        rpc_error_new(NULL, &err),
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no JSON\","
        "\"data\":{\"name\":\"rpc.parse\"}}}");
    ck_assert_uint_eq(params->refcount, 1);
    ck_assert_uint_eq(id->refcount, 1);
    json_decref(params);
    json_decref(id);
}
END_TEST

START_TEST(replies_are_read)
{
    struct err sent, err = ERR_INIT;
    json_t *result = NULL, *value = json_string("yes"), *id = json_integer(1);
    json_t *reply = rpc_result_new(id, value);
    ck_assert_int_eq(rpc_reply_parse(reply, &result, &err), 0);
    ck_assert_str_eq(json_string_value(result), "yes");
    json_decref(reply);
    err_at(&sent, ERR_NOT_FOUND, "/ids/0", "there is no job 9");
    reply = rpc_error_new(id, &sent);
    ck_assert_int_eq(rpc_reply_parse(reply, &result, &err), ERR_NOT_FOUND);
    ck_assert_str_eq(err.path, "/ids/0");
    ck_assert_str_eq(err.message, "there is no job 9");
    json_decref(reply);
    json_decref(id);
    json_decref(value);
}
END_TEST

static const struct {
    const char *reply;
    int code;
} odd[] = {
    {"{}", ERR_REQUEST},
    {"[]", ERR_REQUEST},
    {"{\"error\": 3}", ERR_REQUEST},
    {"{\"error\": {\"message\": 3}}", ERR_REQUEST},
    {"{\"error\": {\"message\": \"m\"}}", ERR_INTERNAL},
    {"{\"error\": {\"message\": \"m\", \"data\": {\"name\": \"from.tomorrow\"}}}", ERR_INTERNAL},
    {"{\"error\": {\"message\": \"m\", \"data\": {\"name\": 3, \"path\": {}}}}", ERR_INTERNAL},
};

START_TEST(odd_replies_are_errors)
{
    json_t *reply = json_loads(odd[_i].reply, 0, NULL), *result = NULL;
    struct err err = ERR_INIT;
    ck_assert_int_eq(rpc_reply_parse(reply, &result, &err), odd[_i].code);
    ck_assert_ptr_null(result);
    ck_assert_str_ne(err.message, "");
    json_decref(reply);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proto/rpc");
    TCase *tcase = checks_case(suite, "framer", 0);
    tcase_add_test(tcase, lines_come_whole);
    tcase_add_test(tcase, half_a_line_waits);
    tcase_add_test(tcase, long_lines_are_refused);
    tcase = checks_case(suite, "messages", 0);
    tcase_add_loop_test(tcase, requests_are_read_strictly, 0, sizeof requests / sizeof requests[0]);
    tcase_add_test(tcase, a_request_may_carry_a_deep_document);
    tcase_add_test(tcase, messages_are_written);
    tcase_add_test(tcase, replies_are_read);
    tcase_add_loop_test(tcase, odd_replies_are_errors, 0, sizeof odd / sizeof odd[0]);
    return checks_run(suite);
}
