/* Connections: framing, half-closes, limits, watches and logs, over a real socket. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/statedir.h"
#include "daemon/watch.h"
#include "tests/daemon/box.h"
#include "tests/lib/checks.h"

static struct box box;
static struct client client;

static void setup(void)
{
    struct rlimit limit;
    signal(SIGPIPE, SIG_IGN); /* as in traind itself */
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    box_start(&box, "a", 4);
    client_open(&box, &client);
}

static void teardown(void)
{
    client_close(&client);
    box_stop(&box);
    checks_scratch_remove();
}

static void send_text(struct client *to, const char *text)
{
    client_send(to, text, strlen(text));
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "null";
}

static int64_t integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* The next line is an error of this name. */
static void expect_error(struct client *from, const char *name)
{
    json_t *reply = client_read(&box, from);
    ck_assert_msg(reply != NULL, "no %s", name);
    const json_t *error = json_object_get(reply, "error");
    ck_assert_str_eq(text(json_object_get(error, "data"), "name"), name);
    json_decref(reply);
}

static void expect_end(struct client *from)
{
    ck_assert_ptr_null(client_read(&box, from));
}

/* ── Lines ── */

START_TEST(absent_null_and_empty_params_are_the_same)
{
    static const char *const requests[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server.info\"}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server.info\",\"params\":null}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server.info\",\"params\":{}}\n"};
    for (size_t i = 0; i < 3; i++) {
        send_text(&client, requests[i]);
        json_t *reply = client_read(&box, &client);
        ck_assert_int_eq(integer(json_object_get(reply, "result"), "protocol"), 1);
        json_decref(reply);
    }
}
END_TEST

START_TEST(a_broken_line_ends_the_connection)
{
    static const char *const lines[] = {"{\"jsonrpc\": oops}\n", "\"\xff\xfe\"\n",
                                        "{\"id\":1,\"id\":2}\n"};
    for (size_t i = 0; i < 3; i++) {
        struct client other;
        client_open(&box, &other);
        send_text(&other, lines[i]);
        expect_error(&other, "rpc.parse");
        expect_end(&other);
        client_close(&other);
    }
    json_decref(client_result(&box, &client, "server.info", NULL));
}
END_TEST

START_TEST(what_is_no_request_is_refused_and_the_connection_stays)
{
    send_text(&client, "[]\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no.such\"}\n"
                       "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"server.info\",\"params\":[]}\n");
    expect_error(&client, "rpc.request");
    expect_error(&client, "rpc.method");
    expect_error(&client, "rpc.params");
    json_decref(client_result(&box, &client, "server.describe", NULL));
}
END_TEST

START_TEST(a_line_that_is_too_long_ends_the_connection)
{
    struct client other;
    size_t sent = 0;
    char *block = malloc(1 << 20);
    memset(block, 'x', 1 << 20);
    client_open(&box, &other);
    while (sent <= LIMIT_LINE_BYTES) {
        ssize_t n = send(other.fd, block, 1 << 20, MSG_NOSIGNAL);
        if (n > 0)
            sent += (size_t)n;
        else if (errno == EAGAIN)
            box_turn(&box, NULL);
        else
            break;
    }
    expect_error(&other, "rpc.parse");
    expect_end(&other);
    client_close(&other);
    free(block);
}
END_TEST

START_TEST(a_half_closed_client_gets_its_replies)
{
    send_text(&client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server.info\"}\n"
                       "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"job.list\"}"); /* no newline */
    shutdown(client.fd, SHUT_WR);
    for (int i = 0; i < 2; i++) {
        json_t *reply = client_read(&box, &client);
        ck_assert_ptr_nonnull(json_object_get(reply, "result"));
        json_decref(reply);
    }
    expect_end(&client);
}
END_TEST

/* Whatever its last request waits for. */
START_TEST(a_half_closed_client_that_goes_leaves_nothing)
{
    static const char *const last[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.wait\",\"params\":{\"ids\":[1]}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.watch\"}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.logs\",\"params\":{\"id\":1,\"follow\":"
        "true}}"
        "\n"};
    client_submit(&box, &client, 4);
    box_wait_open(&box, 1);
    for (size_t i = 0; i < 3; i++) {
        struct client other;
        client_open(&box, &other);
        send_text(&other, last[i]);
        shutdown(other.fd, SHUT_WR);
        while (box.daemon->sessions.n < 2)
            box_turn(&box, NULL);
        client_close(&other);
        while (box.daemon->sessions.n > 1)
            box_turn(&box, NULL);
    }
    ck_assert_ptr_null(LIST_FIRST(&box.daemon->waits));
}
END_TEST

START_TEST(many_requests_at_once_are_all_answered)
{
    bool seen[500] = {false};
    for (int i = 0; i < 500; i++) {
        char line[128];
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"job.list\",\"params\":{}}\n", i);
        send_text(&client, line);
    }
    for (int i = 0; i < 500; i++) {
        json_t *reply = client_read(&box, &client);
        int64_t id = integer(reply, "id");
        ck_assert(id >= 0 && id < 500 && !seen[id]);
        seen[id] = true;
        json_decref(reply);
    }
}
END_TEST

/* A document of a megabyte or so, to be seen with job.show. */
static int64_t submit_large(void)
{
    json_t *document = box_document(4);
    json_t *layers = json_object_get(json_object_get(document, "model"), "layers");
    for (int i = 1; i < LIMIT_LAYERS; i++) {
        char name[128];
        snprintf(name, sizeof name, "%0100d", i);
        json_array_append_new(layers, json_pack("{s:s, s:s}", "type", "ReLU", "name", name));
    }
    json_t *result = client_result(&box, &client, "job.submit",
                                   json_pack("{s:o, s:s}", "job", document, "cwd", "/"));
    int64_t id = integer(result, "id");
    json_decref(result);
    return id;
}

START_TEST(large_answers_asked_for_at_once_all_come)
{
    enum { N = SESSION_HARD_BYTES / (1 << 20) + 8 };
    int64_t id = submit_large();
    for (int i = 0; i < N; i++) {
        char line[128];
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"job.show\",\"params\":{\"id\":%d}}\n",
                 i, (int)id);
        send_text(&client, line);
    }
    for (int i = 0; i < N; i++) {
        json_t *reply = client_read(&box, &client);
        ck_assert_msg(reply != NULL, "closed after %d answers", i);
        ck_assert_int_eq(integer(reply, "id"), i);
        const json_t *model =
            json_object_get(json_object_get(json_object_get(reply, "result"), "document"), "model");
        ck_assert_uint_eq(json_array_size(json_object_get(model, "layers")), LIMIT_LAYERS);
        json_decref(reply);
    }
}
END_TEST

/* ── Limits ── */

START_TEST(beyond_the_cap_others_are_still_served)
{
    static struct client many[SESSION_MAX];
    for (int i = 0; i < SESSION_MAX - 1; i++) {
        client_open(&box, &many[i]);
        if (i % 100 == 0) /* the kernel's queue is short */
            json_decref(client_result(&box, &many[i], "device.list", NULL));
    }
    json_decref(client_result(&box, &many[SESSION_MAX - 2], "device.list", NULL));
    client_open(&box, &many[SESSION_MAX - 1]);
    expect_error(&many[SESSION_MAX - 1], "busy");
    expect_end(&many[SESSION_MAX - 1]);
    json_decref(client_result(&box, &client, "server.info", NULL));
    client_close(&many[0]);
    client_close(&many[SESSION_MAX - 1]);
    while (box.daemon->sessions.n == SESSION_MAX)
        box_turn(&box, NULL);
    client_open(&box, &many[0]);
    json_decref(client_result(&box, &many[0], "server.info", NULL));
    for (int i = 0; i < SESSION_MAX - 1; i++)
        client_close(&many[i]);
}
END_TEST

START_TEST(without_descriptors_clients_wait)
{
    struct client late;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct rlimit before, none;
    snprintf(to.sun_path, sizeof to.sun_path, "%s", box.config.socket);
    json_decref(client_result(&box, &client, "server.info", NULL));
    client_take(&box, &late, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = (rlim_t)late.fd + 1;
    setrlimit(RLIMIT_NOFILE, &none);
    ck_assert_int_eq(connect(late.fd, (struct sockaddr *)&to, sizeof to), 0);
    json_decref(client_result(&box, &client, "device.list", NULL));
    ck_assert_uint_eq(box.daemon->sessions.n, 1);
    setrlimit(RLIMIT_NOFILE, &before);
    json_decref(client_result(&box, &late, "server.info", NULL));
    client_close(&late);
}
END_TEST

/* ── Watches ── */

/* The next event's parameters, as "type state-or-step". */
static int64_t expect_event(struct client *from, const char *want)
{
    char got[64];
    json_t *event = client_event(&box, from);
    ck_assert_msg(event != NULL, "no event %s", want);
    const json_t *params = json_object_get(event, "params");
    const json_t *record = json_object_get(params, "record");
    const json_t *progress = json_object_get(record, "progress");
    bool state = strcmp(text(params, "type"), "state") == 0;
    if (state)
        snprintf(got, sizeof got, "state %s", text(record, "state"));
    else
        snprintf(got, sizeof got, "%s %d", text(params, "type"), (int)integer(progress, "step"));
    ck_assert_str_eq(got, want);
    int64_t seq = integer(params, "seq");
    json_decref(event);
    return seq;
}

static void progress(int64_t id, int step)
{
    char line[128];
    snprintf(line, sizeof line, "{\"type\":\"progress\",\"step\":%d,\"epoch\":1,\"loss\":0.5}",
             step);
    box_report(&box, id, line);
}

static void end(int64_t id)
{
    box_report(&box, id, "{\"type\":\"done\",\"step\":9,\"weights\":\"/w\"}");
    box_ended(&box, id, (struct runner_exit){.status = 0, .reason = RUNNER_EXITED});
}

START_TEST(a_watch_tells_everything_in_order)
{
    struct client other;
    int64_t a = client_submit(&box, &client, 4);
    box_wait_open(&box, a);
    client_open(&box, &other);
    json_t *result = client_result(&box, &other, "job.watch", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "jobs")), 1);
    int64_t seq = integer(result, "seq");
    json_decref(result);
    box_started(&box, a);
    int64_t running = expect_event(&other, "state running");
    ck_assert_int_gt(running, seq);
    progress(a, 1);
    expect_event(&other, "progress 1");
    client_submit(&box, &client, 4);
    expect_event(&other, "state queued");
    end(a);
    expect_event(&other, "progress 9");
    int64_t completed = expect_event(&other, "state completed");
    ck_assert_int_gt(completed, running);
    expect_event(&other, "state starting");
    client_close(&other);
}
END_TEST

START_TEST(since_replays_what_was_missed_over_a_restart)
{
    int64_t a = client_submit(&box, &client, 4);
    box_wait_open(&box, a);
    json_t *result = client_result(&box, &client, "job.watch", json_pack("{s:[i]}", "ids", (int)a));
    int64_t seq = integer(result, "seq");
    json_decref(result);
    box_started(&box, a);
    end(a);
    client_wait_state(&box, &client, a, "completed");
    client_close(&client);
    box_stop(&box);
    box_start(&box, "a", 4);
    client_open(&box, &client);
    result = client_result(&box, &client, "job.watch", json_pack("{s:I}", "since", seq));
    json_decref(result);
    expect_event(&client, "state running");
    seq = expect_event(&client, "state completed");
    client_error(&box, &client, "job.watch", json_pack("{s:I}", "since", seq + 1), "watch.gone");
}
END_TEST

START_TEST(a_replayed_job_that_waits_says_for_what)
{
    int64_t a = client_submit(&box, &client, 4), b = client_submit(&box, &client, 4);
    box_wait_open(&box, a);
    client_wait_state(&box, &client, a, "starting");
    json_decref(client_result(&box, &client, "job.watch", json_pack("{s:i}", "since", 0)));
    for (int64_t id = 0; id != b;) {
        json_t *event = client_event(&box, &client);
        const json_t *params = json_object_get(event, "params");
        id = integer(params, "id");
        ck_assert_str_eq(text(json_object_get(params, "record"), "reason"),
                         id == b ? "waiting for 4 of 4 devices" : "null");
        json_decref(event);
    }
}
END_TEST

START_TEST(a_watch_goes_on_after_a_half_close)
{
    struct client other;
    client_open(&box, &other);
    json_decref(client_result(&box, &other, "job.watch", NULL));
    shutdown(other.fd, SHUT_WR);
    int64_t a = client_submit(&box, &client, 4);
    expect_event(&other, "state queued");
    expect_event(&other, "state starting");
    box_wait_open(&box, a);
    box_started(&box, a);
    expect_event(&other, "state running");
    client_close(&other);
}
END_TEST

START_TEST(a_slow_watcher_gets_the_newest_and_every_state)
{
    enum { STEPS = 20000 };
    struct client slow;
    int events = 0, last = 0;
    int64_t a = client_submit(&box, &client, 4);
    box_wait_open(&box, a);
    client_open(&box, &slow);
    json_decref(client_result(&box, &slow, "job.watch", NULL));
    box_started(&box, a);
    expect_event(&slow, "state running");
    for (int step = 1; step <= STEPS; step++)
        progress(a, step);
    json_decref(client_result(&box, &client, "server.info", NULL)); /* nobody else waits */
    while (last < STEPS) {
        json_t *event = client_event(&box, &slow);
        const json_t *record = json_object_get(json_object_get(event, "params"), "record");
        int step = (int)integer(json_object_get(record, "progress"), "step");
        ck_assert_int_gt(step, last);
        last = step;
        events++;
        json_decref(event);
    }
    ck_assert_int_lt(events, STEPS / 2);
    end(a);
    expect_event(&slow, "progress 9");
    expect_event(&slow, "state completed");
    client_close(&slow);
}
END_TEST

START_TEST(a_watcher_far_behind_is_told_that_it_missed_news)
{
    enum { N = WATCH_BEHIND + 1 };
    struct client slow;
    bool lagged = false;
    client_close(&client);
    box_stop(&box);
    box_start(&box, "wide", LIMIT_DEVICES);
    client_open(&box, &client);
    for (int i = 0; i < N; i++)
        client_submit(&box, &client, 1);
    for (int i = 1; i < N; i++) {
        box_wait_open(&box, i);
        box_started(&box, i);
    }
    client_open(&box, &slow);
    json_decref(client_result(&box, &slow, "job.watch", NULL));
    for (int step = 1; step <= 10000; step++)
        progress(1, step);
    for (int i = 2; i < N; i++)
        progress(i, 1);
    end(1); /* its device goes to the last one */
    box_wait_open(&box, N);
    box_started(&box, N);
    progress(N, 1);
    while (!lagged) {
        json_t *event = client_event(&box, &slow);
        ck_assert_ptr_nonnull(event);
        lagged = strcmp(text(json_object_get(event, "params"), "type"), "lagged") == 0;
        json_decref(event);
    }
    client_close(&slow);
}
END_TEST

/* ── Logs ── */

static json_t *logs(int64_t id, int64_t offset, bool follow)
{
    return json_pack("{s:I, s:I, s:b}", "id", (json_int_t)id, "offset", (json_int_t)offset,
                     "follow", follow);
}

START_TEST(logs_are_text_where_they_are_text)
{
    int64_t a = client_submit(&box, &client, 4);
    box_wait_open(&box, a);
    json_t *result = client_result(&box, &client, "job.logs", logs(a, 0, false));
    ck_assert_str_eq(text(result, "data"), "");
    ck_assert(json_is_false(json_object_get(result, "eof")));
    json_decref(result);
    box_log(&box, a, "h\xc3\xa9llo\n\xe2\x82", 9); /* the euro sign is not finished */
    result = client_result(&box, &client, "job.logs", logs(a, 0, false));
    ck_assert_str_eq(text(result, "data"), "h\xc3\xa9llo\n");
    ck_assert_int_eq(integer(result, "next"), 7);
    json_decref(result);
    result = client_result(&box, &client, "job.logs", logs(a, 2, false)); /* inside the é */
    ck_assert_str_eq(text(result, "encoding"), "base64");
    ck_assert_str_eq(text(result, "data"), "qWxsbwo=");
    json_decref(result);
    box_started(&box, a);
    end(a);
    client_wait_state(&box, &client, a, "completed");
    result = client_result(&box, &client, "job.logs", logs(a, 7, false));
    ck_assert_str_eq(text(result, "data"), "4oI=");
    ck_assert(json_is_true(json_object_get(result, "eof")));
    json_decref(result);
    client_error(&box, &client, "job.logs", logs(a, -1, false), "rpc.params");
    client_error(&box, &client, "job.logs", logs(77, 0, false), "not_found");
}
END_TEST

START_TEST(a_follow_ends_with_the_job)
{
    size_t total = 0;
    bool eof = false;
    char *block = malloc(600000);
    int64_t a = client_submit(&box, &client, 4);
    struct client other;
    box_wait_open(&box, a);
    client_open(&box, &other);
    box_log(&box, a, "one\n", 4);
    json_t *result = client_result(&box, &other, "job.logs", logs(a, 0, true));
    ck_assert_str_eq(text(result, "data"), "one\n");
    json_decref(result);
    box_log(&box, a, "two\n", 4);
    json_t *event = client_event(&box, &other);
    ck_assert_str_eq(text(event, "method"), "job.log");
    ck_assert_str_eq(text(json_object_get(event, "params"), "data"), "two\n");
    json_decref(event);
    memset(block, 'x', 600000);
    box_log(&box, a, block, 600000);
    box_started(&box, a);
    end(a);
    while (!eof) {
        event = client_event(&box, &other);
        const json_t *params = json_object_get(event, "params");
        ck_assert_int_eq(integer(params, "offset"), 8 + (int64_t)total);
        total += strlen(text(params, "data"));
        eof = json_is_true(json_object_get(params, "eof"));
        json_decref(event);
    }
    ck_assert_uint_eq(total, 600000);
    shutdown(other.fd, SHUT_WR);
    expect_end(&other);
    client_close(&other);
    free(block);
}
END_TEST

/* A failure in the middle is told, and is not taken for the end of the log. */
START_TEST(a_follow_that_cannot_go_on_says_so)
{
    char path[PATH_MAX];
    struct client other;
    int64_t a = client_submit(&box, &client, 4);
    box_wait_open(&box, a);
    client_open(&box, &other);
    box_log(&box, a, "one\n", 4);
    json_decref(client_result(&box, &other, "job.logs", logs(a, 0, true)));
    statedir_job(box.config.state, a, "log", path, sizeof path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0); /* can be opened, not read */
    box_started(&box, a);
    end(a);
    expect_error(&other, "io");
    expect_end(&other);
    client_error(&box, &client, "job.logs", logs(a, 0, false), "io");
    client_close(&other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("session");
    TCase *tcase = checks_case(suite, "lines", 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, absent_null_and_empty_params_are_the_same);
    tcase_add_test(tcase, a_broken_line_ends_the_connection);
    tcase_add_test(tcase, what_is_no_request_is_refused_and_the_connection_stays);
    tcase_add_test(tcase, a_line_that_is_too_long_ends_the_connection);
    tcase_add_test(tcase, a_half_closed_client_gets_its_replies);
    tcase_add_test(tcase, a_half_closed_client_that_goes_leaves_nothing);
    tcase_add_test(tcase, many_requests_at_once_are_all_answered);
    tcase_add_test(tcase, large_answers_asked_for_at_once_all_come);
    tcase = checks_case(suite, "limits", 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, beyond_the_cap_others_are_still_served);
    tcase_add_test(tcase, without_descriptors_clients_wait);
    tcase = checks_case(suite, "watch", 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_watch_tells_everything_in_order);
    tcase_add_test(tcase, since_replays_what_was_missed_over_a_restart);
    tcase_add_test(tcase, a_replayed_job_that_waits_says_for_what);
    tcase_add_test(tcase, a_watch_goes_on_after_a_half_close);
    tcase_add_test(tcase, a_slow_watcher_gets_the_newest_and_every_state);
    tcase_add_test(tcase, a_watcher_far_behind_is_told_that_it_missed_news);
    tcase = checks_case(suite, "logs", 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, logs_are_text_where_they_are_text);
    tcase_add_test(tcase, a_follow_ends_with_the_job);
    tcase_add_test(tcase, a_follow_that_cannot_go_on_says_so);
    return checks_run(suite);
}
